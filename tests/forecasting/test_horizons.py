"""Three horizons of one network: probabilities that never decrease with the horizon."""

from datetime import timedelta

import numpy as np
import pytest

from forecasting.calibration import Calibration
from forecasting.network import Layer, Network
from forecasting.window import WindowSpec


def curves(rng: np.random.Generator) -> Calibration:
    return Calibration(rng.random(4).astype(np.float32), rng.standard_normal(4).astype(np.float32))


def test_probabilities_never_decrease_with_the_horizon_whatever_the_logits() -> None:
    rng = np.random.default_rng(3)
    main, near, far = (curves(rng) for _ in range(3))
    calibration = Calibration(main.scale, main.shift, near, far)
    logits = (30 * rng.standard_normal((500, 4, 3))).astype(np.float32)
    by_horizon = calibration.by_horizon(logits)
    assert by_horizon is not None
    assert np.all(np.diff(by_horizon, axis=-1) >= 0)
    assert np.all((by_horizon >= 0) & (by_horizon <= 1))
    assert np.array_equal(by_horizon[..., 1], main.probabilities(logits[..., 0]))


def test_a_network_with_a_link_has_three_logits_and_one_without_has_one() -> None:
    rng = np.random.default_rng(4)

    def layer(inputs: int, outputs: int) -> Layer:
        weight = rng.standard_normal((outputs, inputs)).astype(np.float32)
        return Layer(weight, rng.standard_normal(outputs).astype(np.float32))

    features, history = rng.random((6, 5)).astype(np.float32), rng.random((6, 2, 3)).astype(np.float32)
    own, link = (layer(3, 4), layer(4, 3)), np.array([0.5, -2], dtype=np.float32)
    network = Network((layer(5, 2),), own, link=link)
    logits = network.horizon_logits(features, history)
    unlinked = Network(network.layers, own, link=np.zeros(2, dtype=np.float32)).horizon_logits(features, history)
    assert np.array_equal(network.logits(features, history), logits[..., 0])
    assert np.allclose(logits[..., 1:] - unlinked[..., 1:], link * logits[..., :1], atol=1e-5)
    again = Network.from_arrays(network.arrays())
    assert np.array_equal(again.horizon_logits(features, history), logits)
    single = Network(network.layers)
    assert single.horizon_logits(features).shape == (6, 2, 1)
    assert Calibration.identity(2).by_horizon(single.horizon_logits(features)) is None


@pytest.mark.parametrize(
    ("minutes", "names"),
    [(480, ("2h", "8h", "24h")), (60, ("15min", "1h", "3h")), (50, ("12.5min", "50min", "150min"))],
)
def test_horizons_are_named_by_their_length(minutes: int, names: tuple[str, str, str]) -> None:
    assert WindowSpec(horizon=timedelta(minutes=minutes)).horizon_names == names
