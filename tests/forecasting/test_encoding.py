"""The encoding of own-history figures: bins with fixed edges, in numpy as in training."""

import numpy as np

from forecasting.encoding import Bins, Encoding
from forecasting.history import HistorySpec
from forecasting.network import Layer, Network


def test_a_bin_is_zero_below_one_above_and_linear_inside() -> None:
    bins = Bins.build([(1, (0, 2, 6))])
    figures = np.array([[9, -1], [9, 1], [9, 2], [9, 5], [9, 7]], dtype=np.float32)
    assert bins(figures)[:, 2:].tolist() == [[0, 0], [0.5, 0], [1, 0], [1, 0.75], [1, 1]]
    assert np.array_equal(bins(figures)[:, :2], figures), "the figures themselves stay"


def test_recency_is_binned_by_hours() -> None:
    spec = HistorySpec()
    encoding = Encoding.build(spec)
    figures = np.zeros((1, 3, spec.width + spec.machine_width), dtype=np.float32)
    decays = np.array([decay.total_seconds() / 3600 for decay in spec.decays])
    for code, hours in enumerate((0.0, 8.0)):
        figures[0, code, : len(decays)] = np.exp(-hours / decays)
    codes, machine = encoding.split(figures)
    ages = codes[0, :, spec.width : spec.width + 12]
    assert np.allclose(ages.sum(axis=1), [12, 7, 0], atol=1e-3), "bins above 8 hours; none of a code never seen"
    assert machine.shape[:2] == (1, 1), "a machine's figures are encoded once"
    assert codes.shape[-1] + machine.shape[-1] == encoding.width == len(encoding.sources)


def test_the_own_path_reads_machine_figures_once_and_gives_the_same_logits() -> None:
    rng, spec = np.random.default_rng(7), HistorySpec()
    encoding = Encoding.build(spec)

    def layer(inputs: int, outputs: int) -> Layer:
        weight = rng.standard_normal((outputs, inputs)).astype(np.float32)
        return Layer(weight, rng.standard_normal(outputs).astype(np.float32))

    network = Network((layer(2, 3),), (layer(encoding.width, 4), layer(4, 1)), encoding)
    own = rng.random((5, 3, spec.width)).astype(np.float32)
    machine = np.repeat(rng.random((5, 1, spec.machine_width)).astype(np.float32), 3, axis=1)
    history, features = np.concatenate([own, machine], axis=2), rng.random((5, 2)).astype(np.float32)
    plain = Network(network.layers, network.own).logits(features, network.own_inputs(history))
    assert np.allclose(network.logits(features, history), plain, atol=1e-4)
