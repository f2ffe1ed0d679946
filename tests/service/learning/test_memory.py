"""Memories keep windows by code, so a growing vocabulary never makes an old sample wrong."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from forecasting.history import HistorySpec
from forecasting.series import AlarmSeries, to_us
from forecasting.vocabulary import Columns, Vocabulary
from forecasting.window import WindowSpec
from service.learning.dataset import covered_moments, windows
from service.learning.memory import Memory
from service.learning.strategies import BatOcdm
from service.learning.windows import Samples, WindowSet, concat_samples, concat_windows

START = datetime(2026, 1, 5, tzinfo=UTC)
SPEC = WindowSpec()


def machine(seed: int, codes: list[int], days: int = 20) -> WindowSet:
    rng = np.random.default_rng(seed)
    minutes = np.sort(rng.integers(0, days * 1440, 600))
    alarms = [(START + timedelta(minutes=int(minute)), int(rng.choice(codes))) for minute in minutes]
    heard = (alarms[0][0], alarms[-1][0])
    return windows(
        AlarmSeries.from_alarms(alarms), covered_moments(heard, SPEC), SPEC, since=heard[0], history=HistorySpec()
    )


def learned(memory: Memory, task: str, seen: WindowSet, targets: Columns, size: int = 60) -> Memory:
    return memory.update(task, seen, size=size, strategy=BatOcdm(), targets=targets, rng=np.random.default_rng(0))


def test_old_sample_becomes_the_right_vector_for_new_columns() -> None:
    old = machine(1, [10, 20, 30])
    small = Vocabulary((10, 20), (20,))
    memory = learned(Memory(), "a", old, small.target_columns)
    large = small.extend([5, 30], [30, 5])
    before = Samples.from_windows(memory.tasks["a"].windows, small, history=True)
    after = Samples.from_windows(memory.tasks["a"].windows, large, history=True)
    kept = memory.tasks["a"].windows
    assert np.array_equal(after.inputs[:, :2], before.inputs)
    assert np.array_equal(after.labels[:, :1], before.labels)
    assert large.inputs == (10, 20, 5, 30)
    assert large.targets == (20, 5, 30)
    assert np.array_equal(after.labels[:, 2], kept.outcomes[:, kept.codes.tolist().index(30)])
    assert after.inputs[:, 3] == pytest.approx(1 - before.inputs.sum(axis=1), abs=1e-6)
    assert not after.labels[:, 1].any()
    assert not after.inputs[:, 2].any()


def test_own_history_follows_its_code_into_any_column() -> None:
    seen = machine(2, [10, 20])
    figures = HistorySpec().width
    forward = seen.code_recency(Columns((10, 20, 99)))
    backward = seen.code_recency(Columns((20, 10)))
    assert np.array_equal(forward[:, 0], backward[:, 1])
    assert not forward[:, 2, :figures].any()
    assert np.array_equal(forward[:, 2, figures:], seen.context)


def test_memory_remembers_how_common_labels_were_before_it_balanced_them() -> None:
    seen = machine(3, [1, 1, 1, 1, 1, 1, 1, 2])
    targets = Columns((1, 2))
    task = learned(Memory(), "a", seen, targets).tasks["a"]
    assert task.offered == len(seen)
    assert [task.frequency[1], task.frequency[2]] == seen.labels(targets).sum(axis=0).tolist()


def test_sizes_of_all_tasks_together_never_exceed_the_memory() -> None:
    memory, targets = Memory(), Columns((1, 2))
    for place in range(4):
        memory = learned(memory, f"m{place}", machine(place, [1, 2, 3]), targets, size=50)
    assert [len(task.windows) for task in memory.tasks.values()] == [13, 13, 12, 12]
    assert len(memory) == 50


def test_task_learned_again_replaces_its_old_windows_and_becomes_the_newest() -> None:
    targets = Columns((1, 2))
    memory = learned(Memory(), "a", machine(0, [1, 2]), targets)
    memory = learned(memory, "b", machine(1, [1, 2]), targets)
    again = learned(memory, "a", machine(2, [1, 2]), targets)
    assert list(again.tasks) == ["b", "a"]
    assert len(again) == 60


def test_retired_machine_frees_its_share() -> None:
    targets = Columns((1, 2))
    memory = learned(learned(Memory(), "a", machine(0, [1, 2]), targets), "b", machine(1, [1, 2]), targets)
    alone = memory.without("a")
    assert list(alone.tasks) == ["b"]
    assert len(learned(alone, "c", machine(2, [1, 2]), targets)) == 60


def test_learning_leaves_the_old_memory_as_it_was() -> None:
    targets = Columns((1, 2))
    memory = learned(Memory(), "a", machine(0, [1, 2]), targets)
    learned(memory, "b", machine(1, [1, 2]), targets)
    assert len(memory.tasks["a"].windows) == 60


def test_joined_windows_say_the_same_as_their_parts() -> None:
    first, second = machine(0, [1, 2]), machine(1, [2, 3])
    vocabulary = Vocabulary((3, 1), (2, 3))
    together = Samples.from_windows(concat_windows([first, second]), vocabulary, history=True)
    parts = concat_samples([Samples.from_windows(part, vocabulary, history=True) for part in (first, second)])
    assert np.array_equal(together.inputs, parts.inputs)
    assert np.array_equal(together.labels, parts.labels)
    assert together.history is not None
    assert parts.history is not None
    assert np.array_equal(together.history, parts.history)


def test_windows_without_history_cannot_pretend_to_have_one() -> None:
    seen = windows(AlarmSeries.from_alarms([]), np.array([to_us(START)]), SPEC, since=START)
    with pytest.raises(ValueError, match="no own history"):
        Samples.from_windows(seen, Vocabulary((1,), (1,)), history=True)
