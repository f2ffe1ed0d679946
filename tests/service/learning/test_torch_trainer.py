"""Training learns, repeats itself to the bit, and serves from numpy what torch learned."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from forecasting.history import HistorySpec
from forecasting.network import Network
from service.learning.continual_update import widen
from service.learning.torch_trainer import (
    Dropout,
    EpochProgress,
    Module,
    TrainingSpec,
    cross_entropy,
    focal_loss,
    to_module,
    to_network,
    train,
)
from service.learning.windows import FAR, MAIN, NEAR, UNKNOWN, Samples

SMALL = TrainingSpec(
    hidden=(32, 16),
    own_hidden=(8,),
    epochs=40,
    learning_rate=5e-3,
    dropout=Dropout(0.1),
    loss="cross-entropy",
)


def samples(seed: int, count: int = 400, *, flip: bool = False, history: bool = False) -> Samples:
    """Inputs whose sign says the label, the other way round with ``flip``, which the last input tells."""
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(count, 6)).astype(np.float32)
    inputs[:, 5] = 2 if flip else -2
    labels = (inputs[:, :3] > 0) ^ flip
    figures = rng.normal(size=(count, 3, 4)).astype(np.float32) if history else None
    return Samples(inputs, labels, figures)


def accuracy(network: Network, exam: Samples) -> float:
    return float(np.mean((network.logits(exam.inputs, exam.history) > 0) == exam.labels))


def trained(network: Network | None, new: Samples, replay: Samples | None = None, seed: int = 0) -> Network:
    return train(network, new, replay=replay, spec=SMALL, rng=np.random.default_rng(seed))


def same(a: Network, b: Network) -> bool:
    return all(np.array_equal(array, b.arrays()[name]) for name, array in a.arrays().items())


@pytest.mark.parametrize("history", [False, True])
def test_numpy_serves_what_torch_learned(history: bool) -> None:  # noqa: FBT001
    exam = samples(1, history=history)
    network = trained(None, samples(0, history=history))
    module = to_module(network, dropout=Dropout()).eval()
    with torch.inference_mode():
        figures = None if exam.history is None else torch.from_numpy(exam.history)
        expected = module(torch.from_numpy(exam.inputs), figures).numpy()
    assert np.allclose(network.horizon_logits(exam.inputs, exam.history), expected, atol=1e-5)
    assert same(to_network(module), network)


def horizon_samples(seed: int, count: int = 600) -> Samples:
    """Codes that come, if their first figure is high within the near horizon, else later, by the second figure."""
    rng, spec = np.random.default_rng(seed), HistorySpec()
    figures = rng.random((count, 2, spec.width + spec.machine_width)).astype(np.float16)
    figures[:, 1, spec.width :] = figures[:, 0, spec.width :]
    inputs = rng.normal(size=(count, 3)).astype(np.float32)
    labels = inputs[:, :2] > 0
    soon, far = figures[..., 0] > 0.5, figures[..., 1] > 0.5
    within = np.where(labels, np.where(soon, NEAR, MAIN), np.where(far, FAR, 0)).astype(np.uint8)
    within[: count // 10][~labels[: count // 10]] = UNKNOWN
    return Samples(inputs, labels, figures, within=within)


def test_near_and_far_horizons_are_learned_beside_the_main_one_and_served_alike() -> None:
    spec = replace(SMALL, encoded=True, epochs=25)
    network = train(None, horizon_samples(0), spec=spec, rng=np.random.default_rng(0))
    exam = horizon_samples(1)
    logits = network.horizon_logits(exam.inputs, exam.history)
    assert exam.within is not None
    assert exam.history is not None
    came, late = exam.labels, (exam.within == FAR) | (exam.within == 0)
    assert np.mean((logits[..., 0] > 0) == exam.labels) > 0.9
    assert np.mean((logits[..., 1] > 0)[came] == (exam.within == NEAR)[came]) > 0.75, "chance is a half"
    assert np.mean((logits[..., 2] > 0)[late] == (exam.within == FAR)[late]) > 0.75, "chance is a half"
    module = to_module(network, dropout=Dropout()).eval()
    with torch.inference_mode():
        expected = module(torch.from_numpy(exam.inputs), torch.from_numpy(exam.history).float()).numpy()
    assert np.allclose(logits, expected, atol=1e-4)
    assert same(to_network(module), network)


def test_same_seed_gives_the_same_bits_and_another_seed_does_not() -> None:
    first, second = trained(None, samples(0)), trained(None, samples(0))
    assert same(first, second)
    assert not same(first, trained(None, samples(0), seed=1))


def test_training_neither_reads_nor_disturbs_the_global_randomness() -> None:
    torch.manual_seed(1)
    first = trained(None, samples(0))
    after = torch.rand(3)
    torch.manual_seed(1)
    assert torch.equal(after, torch.rand(3))
    torch.manual_seed(99)
    assert same(first, trained(None, samples(0)))


def test_learns_and_replay_keeps_what_was_learned() -> None:
    old, new = samples(0), samples(1, flip=True)
    first = trained(None, old)
    assert accuracy(first, samples(2)) > 0.9
    forgetful, mindful = trained(first, new), trained(first, new, replay=old)
    assert accuracy(mindful, samples(2)) > accuracy(forgetful, samples(2)) + 0.1


def test_progress_is_told_after_every_epoch_and_may_stop_training() -> None:
    told: list[EpochProgress] = []
    train(None, samples(0), spec=SMALL, rng=np.random.default_rng(0), progress=told.append)
    assert [progress.epoch for progress in told] == list(range(1, 41))
    assert told[-1].loss < told[0].loss

    def stop(progress: EpochProgress) -> None:
        raise KeyboardInterrupt(progress.epoch)

    with pytest.raises(KeyboardInterrupt):
        train(None, samples(0), spec=SMALL, rng=np.random.default_rng(0), progress=stop)


def test_fresh_weights_take_their_first_steps_and_learned_ones_only_their_epochs() -> None:
    spec = replace(SMALL, epochs=2, first_steps=33)
    told: list[EpochProgress] = []
    fresh = train(None, samples(0), spec=spec, rng=np.random.default_rng(0), progress=told.append)
    assert len(told) == 5, "400 windows are 7 batches, so that 33 steps take 5 epochs"
    told.clear()
    train(fresh, samples(1), spec=spec, rng=np.random.default_rng(0), progress=told.append)
    assert len(told) == 2


def test_dropout_hides_its_share_keeps_the_mean_and_does_nothing_in_use() -> None:
    module = Module((6, 4), dropout=Dropout(inputs=0.25))
    ones = torch.ones(997, 11)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        hidden = module.drop_inputs(ones)
    assert float((hidden == 0).float().mean()) == pytest.approx(0.25, abs=0.02)
    assert float(hidden.mean()) == pytest.approx(1.0, abs=0.03)
    module.eval()
    assert torch.equal(module.drop_inputs(ones), ones)


def test_grown_network_keeps_old_blocks_and_old_outputs() -> None:
    network = trained(None, samples(0, history=True))
    exam = samples(1, history=True)
    larger = widen(network, inputs=9, outputs=5)
    wide = np.random.default_rng(3).normal(size=(400, 9)).astype(np.float32)
    wide[:, :6] = exam.inputs
    assert exam.history is not None
    figures = np.concatenate([exam.history, exam.history[:, :2]], axis=1)
    assert np.allclose(larger.logits(wide, figures)[:, :3], network.logits(exam.inputs, exam.history), atol=1e-5)
    assert np.array_equal(larger.layers[0].weight[:, :6], network.layers[0].weight)
    assert np.array_equal(larger.layers[-1].weight[:3], network.layers[-1].weight)
    assert np.array_equal(larger.layers[-1].bias[:3], network.layers[-1].bias)
    assert all(np.array_equal(a.weight, b.weight) for a, b in zip(larger.own, network.own, strict=True))
    assert all(
        np.array_equal(a.weight, b.weight) for a, b in zip(larger.layers[1:-1], network.layers[1:-1], strict=True)
    )


def test_grown_columns_learn() -> None:
    network = trained(None, samples(0))
    rng = np.random.default_rng(5)
    inputs = rng.normal(size=(400, 7)).astype(np.float32)
    wider = Samples(inputs, np.column_stack([inputs[:, :3] > 0, inputs[:, 6] > 0]))
    after = trained(network, wider)
    assert after.inputs == 7
    assert after.outputs == 4
    assert accuracy(after, wider) > 0.85


def test_network_never_shrinks() -> None:
    with pytest.raises(ValueError, match="only ever grows"):
        widen(trained(None, samples(0)), inputs=5, outputs=3)


def test_nothing_to_learn_from_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="no windows"):
        trained(None, samples(0, count=0))


def test_samples_must_fit_the_network_they_continue() -> None:
    with pytest.raises(ValueError, match="own history"):
        trained(trained(None, samples(0)), samples(1, history=True))


def test_weights_survive_the_way_through_a_file_of_arrays() -> None:
    network = trained(None, samples(0, history=True))
    assert same(Network.from_arrays(network.arrays()), network)


@settings(max_examples=200, deadline=None)
@given(logit=st.floats(-1e4, 1e4), label=st.booleans())
def test_focal_loss_and_its_gradient_are_finite_for_any_logit(logit: float, label: bool) -> None:  # noqa: FBT001
    x = torch.tensor([logit], requires_grad=True)
    loss = focal_loss(x, torch.tensor([float(label)]), alpha=0.8, gamma=2.0)
    loss.backward()  # type: ignore[no-untyped-call]
    assert torch.isfinite(loss)
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()


def test_focal_loss_is_the_papers_formula_where_that_can_be_computed() -> None:
    x, y = torch.linspace(-4, 4, 9), torch.tensor([0.0, 1, 0, 1, 0, 1, 0, 1, 0])
    p = torch.sigmoid(x)
    printed = -0.8 * (1 - p) ** 2 * y * p.log() - 0.2 * p**2 * (1 - y) * (1 - p).log()
    assert torch.allclose(focal_loss(x, y, alpha=0.8, gamma=2.0), printed)


def test_focal_loss_without_focus_is_half_the_cross_entropy() -> None:
    x, y = torch.linspace(-4, 4, 9), torch.tensor([0.0, 1, 0, 1, 0, 1, 0, 1, 0])
    assert torch.allclose(focal_loss(x, y, alpha=0.5, gamma=0.0), cross_entropy(x, y) / 2)
