"""What every strategy must do, and what each alone does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.learning.ocdm import Labels, divergence, keep
from service.learning.strategies import (
    STRATEGIES,
    BatOcdm,
    Cumulative,
    Finetune,
    Indices,
    Ocdm,
    Reservoir,
    Strategy,
    TaskBuffer,
    TaskRandom,
    allocate,
)

BOUNDED = sorted(set(STRATEGIES) - {"finetune", "cumulative"})


def learned(
    strategy: Strategy, tasks: list[Labels], size: int, seed: int = 0
) -> tuple[list[Labels], list[Indices]]:
    """Learn the tasks one after the other; return what is kept of each, and the last answer."""
    rng = np.random.default_rng(seed)
    kept: list[TaskBuffer] = []
    places: list[Indices] = []
    for labels in tasks:
        places = strategy.select(kept, labels, size=size, rng=rng)
        new = TaskBuffer(labels, len(labels), labels.sum(axis=0))
        kept = [
            TaskBuffer(task.labels[stay], task.offered, task.frequency)
            for task, stay in zip([*kept, new], places, strict=True)
        ]
    return [task.labels for task in kept], places


def fleet(seed: int, sizes: list[int], labels: int = 5) -> list[Labels]:
    rng = np.random.default_rng(seed)
    return [rng.random((size, labels)) < rng.random(labels) * 0.6 for size in sizes]


@pytest.mark.parametrize("name", BOUNDED)
@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 150), min_size=1, max_size=5),
    size=st.integers(5, 120),
    seed=st.integers(0, 99),
)
def test_memory_is_full_and_no_fuller(name: str, sizes: list[int], size: int, seed: int) -> None:
    kept, places = learned(STRATEGIES[name], fleet(seed, sizes), size)
    assert sum(map(len, kept)) == min(size, sum(sizes))
    assert all(np.all(np.diff(stay) > 0) for stay in places)


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_same_seed_keeps_the_same_windows(name: str) -> None:
    tasks = fleet(3, [90, 200, 130])
    first = learned(STRATEGIES[name], tasks, 60, seed=5)[1]
    second = learned(STRATEGIES[name], tasks, 60, seed=5)[1]
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("strategy", [BatOcdm(), BatOcdm(batch=None), TaskRandom()])
@given(sizes=st.lists(st.integers(1, 90), min_size=1, max_size=6), size=st.integers(6, 120))
@settings(max_examples=30, deadline=None)
def test_task_aware_strategies_give_every_task_its_share(strategy: Strategy, sizes: list[int], size: int) -> None:
    kept, _ = learned(strategy, fleet(1, sizes), size)
    expected: list[int] = []
    for count in sizes:
        expected = allocate(size, [*expected, count])
    assert [len(labels) for labels in kept] == expected


def test_label_blind_to_tasks_can_lose_a_task_that_task_balance_keeps() -> None:
    varied = np.eye(4, dtype=np.bool_)[np.arange(200) % 4]
    uniform = np.zeros((200, 4), dtype=np.bool_)
    uniform[:, 0] = True
    blind, _ = learned(Ocdm(), [varied, uniform], 40)
    balanced, _ = learned(BatOcdm(), [varied, uniform], 40)
    assert len(blind[1]) < len(balanced[1]) == 20


@pytest.mark.parametrize("strategy", [Ocdm(), Ocdm(batch=None), BatOcdm(), BatOcdm(batch=None)])
def test_balanced_memories_are_far_closer_to_equal_labels_than_chance(strategy: Strategy) -> None:
    tasks = fleet(7, [900, 700], labels=8)
    balanced, _ = learned(strategy, tasks, 100)
    chance, _ = learned(TaskRandom(), tasks, 100)
    assert divergence(np.concatenate(balanced)) < divergence(np.concatenate(chance)) / 10


def test_bat_ocdm_shrinks_an_old_task_by_memory_update() -> None:
    tasks = fleet(2, [120, 300])
    strategy = BatOcdm(batch=None)
    first, _ = learned(strategy, tasks[:1], 80)
    both, _ = learned(strategy, tasks, 80)
    assert divergence(both[0]) == pytest.approx(divergence(first[0][keep(first[0], 40)]), abs=1e-3)
    assert divergence(both[0]) < divergence(first[0][:40]), "better than any forty of them"


def test_equal_label_sets_are_kept_from_all_of_a_task_and_not_from_its_end() -> None:
    same = np.ones((1000, 1), dtype=np.bool_)
    _, (spread,) = learned(BatOcdm(batch=None), [same], 50)
    assert spread.min() < 200
    assert spread.max() > 800


def test_reservoir_keeps_every_window_with_the_same_chance() -> None:
    tasks = fleet(0, [300, 100])
    counts = np.zeros(2)
    for seed in range(60):
        kept, _ = learned(Reservoir(), tasks, 40, seed=seed)
        counts += [len(kept[0]), len(kept[1])]
    assert counts[0] / counts.sum() == pytest.approx(0.75, abs=0.04)


def test_bounds_keep_nothing_and_everything() -> None:
    tasks = fleet(0, [30, 20])
    assert sum(map(len, learned(Finetune(), tasks, 10)[0])) == 0
    assert sum(map(len, learned(Cumulative(), tasks, 10)[0])) == 50


@pytest.mark.parametrize("rho", [0.5, 1.0])
@pytest.mark.parametrize("name", ["ocdm", "bat-ocdm"])
def test_larger_allocation_power_keeps_common_labels_more_common(name: str, rho: float) -> None:
    rng = np.random.default_rng(4)
    task = rng.random((800, 3)) < [0.6, 0.2, 0.05]
    kinds: dict[str, tuple[Strategy, Strategy]] = {
        "ocdm": (Ocdm(), Ocdm(rho=rho)),
        "bat-ocdm": (BatOcdm(), BatOcdm(rho=rho)),
    }
    flat, steep = (learned(kind, [task], 80)[0][0].sum(axis=0) for kind in kinds[name])
    assert steep[0] / steep.sum() > flat[0] / flat.sum()
