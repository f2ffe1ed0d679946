"""One more machine is learned: the same steps for every config, and nothing given is changed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from forecasting.forecaster import Forecaster as Model
from forecasting.history import HistorySpec
from forecasting.network import Layer, Network
from forecasting.series import AlarmSeries
from forecasting.vocabulary import Columns, Vocabulary
from forecasting.window import WindowSpec
from service.learning.continual_update import UpdateConfig, halve_step, interpolate, update_model
from service.learning.dataset import TrainingData, covered_moments, split, windows
from service.learning.memory import Memory
from service.learning.strategies import BatOcdm, Cumulative
from service.learning.windows import Samples

START = datetime(2026, 1, 5, tzinfo=UTC)
CODES = (10, 20, 30)
VOCABULARY = Vocabulary(CODES, CODES)
CONFIG = UpdateConfig(BatOcdm(), memory=80, held_out=0.25, calibration_mode="by-code", thresholds=True)


def lesson(task: str, seed: int) -> TrainingData:
    rng = np.random.default_rng(seed)
    minutes = np.sort(rng.integers(0, 30 * 1440, 300))
    codes = rng.choice(CODES, 300, p=[0.8, 0.15, 0.05])
    alarms = [
        (START + timedelta(minutes=int(minute)), int(code)) for minute, code in zip(minutes, codes, strict=True)
    ]
    spec, heard = WindowSpec(), (alarms[0][0], alarms[-1][0])
    series = AlarmSeries.from_alarms(alarms)
    seen = windows(series, covered_moments(heard, spec), spec, since=heard[0], history=HistorySpec())
    parts = split(seen.at, spec.horizon, calibration=0.2, holdout=0.0)
    return TrainingData(task, seen.take(parts.train), seen.take(parts.calibration), seen.take(parts.holdout))


class Training:
    """Training whose weights are the number of times it was called, and which remembers what it was given."""

    def __init__(self) -> None:
        self.given: list[tuple[Network | None, Samples, Samples | None]] = []

    def __call__(self, network: Network | None, new: Samples, replay: Samples | None) -> Network:
        self.given.append((network, new, replay))
        return constant(float(len(self.given)))


def constant(value: float) -> Network:
    return Network((Layer(np.full((3, 3), value, dtype=np.float32), np.full(3, value, dtype=np.float32)),))


def learned(config: UpdateConfig, tasks: int, training: Training) -> tuple[Model, Memory]:
    network, memory = None, Memory()
    for place in range(tasks):
        model, memory = update_model(
            lesson(f"m{place}", place),
            network=network,
            memory=memory,
            vocabulary=VOCABULARY,
            config=config,
            train=training,
            rng=np.random.default_rng(place),
        )
        network = model.network
    return model, memory


def test_replay_and_held_out_windows_share_the_memory() -> None:
    _, memory = learned(CONFIG, 3, Training())
    assert len(memory) == 80
    assert [len(task.windows) for task in memory.tasks.values()] == [20, 20, 20]
    assert [len(task.held_out) for task in memory.tasks.values()] == [7, 7, 6]


def test_held_out_windows_are_never_learned_from() -> None:
    training = Training()
    _, memory = learned(CONFIG, 2, training)
    for task in memory.tasks.values():
        assert not set(task.held_out.at.tolist()) & set(task.windows.at.tolist())
    for place, (_, new, _) in enumerate(training.given):
        assert len(new) == len(lesson("", place).train)


def test_first_machine_starts_afresh_and_a_later_one_goes_on_with_replay() -> None:
    training = Training()
    learned(CONFIG, 2, training)
    (start, _, nothing), (network, _, replay) = training.given
    assert start is None
    assert nothing is None
    assert network is not None
    assert replay is not None
    assert len(replay) == 60


def test_cumulative_trains_fresh_weights_on_everything() -> None:
    training = Training()
    learned(replace(CONFIG, strategy=Cumulative()), 2, training)
    network, everything, replay = training.given[1]
    assert network is None
    assert replay is None
    assert len(everything) == len(lesson("", 0).train) + len(lesson("", 1).train)


@pytest.mark.parametrize("held_out", [0.0, 0.25])
def test_nothing_is_calibrated_unless_asked_for(held_out: float) -> None:
    model, _ = learned(UpdateConfig(BatOcdm(), memory=80, held_out=held_out), 2, Training())
    assert np.array_equal(model.thresholds, [0.5] * 3)
    assert np.array_equal(model.calibration.scale, [1.0] * 3)
    assert np.array_equal(model.calibration.shift, [0.0] * 3)


def test_curves_are_shared_or_of_each_code_and_thresholds_follow() -> None:
    own, _ = learned(CONFIG, 2, Training())
    shared, _ = learned(replace(CONFIG, calibration_mode="shared"), 2, Training())
    plain, _ = learned(replace(CONFIG, thresholds=False), 2, Training())
    assert np.ptp(shared.calibration.shift) < 1e-3
    assert np.ptp(own.calibration.shift) > 0.1
    assert np.array_equal(plain.calibration.shift, own.calibration.shift)
    assert np.array_equal(plain.thresholds, [0.5] * 3)
    assert not np.array_equal(own.thresholds, [0.5] * 3)


@pytest.mark.parametrize(("before", "trained", "goes"), [(-50, 0.01, "all"), (0.01, 50, "some")])
def test_averaging_goes_as_far_as_windows_that_were_not_learned_from_say(
    before: float, trained: float, goes: str
) -> None:
    config = replace(CONFIG, interpolate_weights=True)
    first, memory = learned(config, 1, Training())
    assert np.array_equal(first.network.layers[0].bias, [1.0] * 3), "the first machine has nothing to go back to"
    model, _ = update_model(
        lesson("m1", 1),
        network=constant(before),
        memory=memory,
        vocabulary=VOCABULARY,
        config=config,
        train=lambda *_: constant(trained),
        rng=np.random.default_rng(1),
    )
    bias = float(model.network.layers[0].bias[0])
    assert bias == pytest.approx(trained) if goes == "all" else before < bias < 0.2 * trained


def test_half_the_way_back_is_half_the_way_and_calibrated_anew() -> None:
    config = replace(CONFIG, interpolate_weights=True)
    whole, memory = learned(config, 2, Training())
    half = halve_step(whole, constant(-1), data=lesson("m1", 1), memory=memory, config=config)
    assert np.allclose(half.network.layers[0].bias, (whole.network.layers[0].bias - 1) / 2)
    assert not np.allclose(half.calibration.shift, whole.calibration.shift)
    assert np.array_equal(half.vocabulary.targets, whole.vocabulary.targets)


def test_what_is_trained_from_scratch_has_no_way_back() -> None:
    model, _ = learned(replace(CONFIG, strategy=Cumulative(), interpolate_weights=True), 3, Training())
    assert np.array_equal(model.network.layers[0].bias, [3.0] * 3)


def test_averaged_weights_lie_between_old_and_new_ones_and_old_ones_grow_to_fit() -> None:
    assert np.allclose(interpolate(constant(1), constant(3), share=0.25).layers[0].weight, 1.5)
    wider = Network((Layer(np.full((4, 5), 2, dtype=np.float32), np.full(4, 2, dtype=np.float32)),))
    between = interpolate(constant(1), wider, share=0.5)
    assert between.layers[0].weight[0].tolist() == [1.5, 1.5, 1.5, 1.0, 1.0]
    assert between.layers[0].bias.tolist() == [1.5, 1.5, 1.5, 1.0]


@pytest.mark.parametrize(("power", "right"), [(0.0, False), (1.0, True)])
def test_unbalancing_weighs_labels_back_to_how_often_they_came(power: float, right: bool) -> None:  # noqa: FBT001
    seen = lesson("a", 0).train
    targets = Columns(CODES)
    memory = Memory().update(
        "a", seen, size=40, strategy=BatOcdm(batch=None), targets=targets, rng=np.random.default_rng(0)
    )
    task = memory.tasks["a"]
    labels, weights = task.windows.labels(targets), task.weights(targets, power=power)
    rates = np.average(labels, axis=0, weights=weights)
    assert np.allclose(rates, seen.labels(targets).mean(axis=0), atol=1e-5) == right


def test_weights_undo_nothing_where_nothing_was_dropped() -> None:
    seen = lesson("a", 0).train
    targets = Columns(CODES)
    memory = Memory().update(
        "a", seen, size=10_000, strategy=BatOcdm(), targets=targets, rng=np.random.default_rng(0)
    )
    assert np.allclose(memory.tasks["a"].weights(targets, power=1.0), 1.0)
