"""The fast greedy keeps exactly what the paper's pseudo-code keeps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.learning.ocdm import TIE, Labels, Reals, divergence, keep, keep_in_batches, power_target


def naive_memory_update(labels: Labels, indices: list[int], removals: int, target: Reals) -> list[int]:
    """Memory Update as printed: for each removal, try every sample and recompute the divergence."""
    left = list(indices)
    for _ in range(removals):
        scores = []
        for candidate in left:
            counts = labels[[index for index in left if index != candidate]].sum(axis=0)
            present = counts > 0
            share = counts[present] / counts.sum() if present.any() else np.array([])
            scores.append(float(np.sum(share * np.log(share / target[present]))) if present.any() else np.inf)
        best = min(scores)
        left.remove(
            next(index for index, score in zip(left, scores, strict=True) if score <= best + TIE or best == np.inf)
        )
    return left


def uniform(labels: Labels) -> Reals:
    return np.full(labels.shape[1], 1 / labels.shape[1])


@st.composite
def tables(draw: st.DrawFn, samples: int = 14, labels: int = 6) -> Labels:
    rows, columns = draw(st.integers(1, samples)), draw(st.integers(1, labels))
    density = draw(st.sampled_from([0.05, 0.2, 0.5, 0.9]))
    seed = draw(st.integers(0, 2**32 - 1))
    return np.random.default_rng(seed).random((rows, columns)) < density


def sets(labels: Labels) -> list[bytes]:
    return sorted(row.tobytes() for row in labels)


@settings(max_examples=300, deadline=None)
@given(labels=tables(), data=st.data())
def test_keeps_what_the_pseudo_code_keeps(labels: Labels, data: st.DataObject) -> None:
    size = data.draw(st.integers(0, len(labels)))
    expected = naive_memory_update(labels, list(range(len(labels))), len(labels) - size, uniform(labels))
    kept = keep(labels, size)
    assert kept.tolist() == expected
    assert sets(labels[kept]) == sets(labels[expected])
    if size:
        assert divergence(labels[kept]) == pytest.approx(divergence(labels[expected]), abs=1e-9)


@settings(max_examples=150, deadline=None)
@given(labels=tables(), rho=st.floats(0.01, 3), data=st.data())
def test_keeps_what_the_pseudo_code_keeps_for_any_allocation_power(
    labels: Labels, rho: float, data: st.DataObject
) -> None:
    size = data.draw(st.integers(0, len(labels)))
    target = power_target(labels.sum(axis=0), rho)
    expected = naive_memory_update(labels, list(range(len(labels))), len(labels) - size, target)
    kept = keep(labels, size, target=target)
    assert divergence(labels[kept], target) == pytest.approx(divergence(labels[expected], target), abs=1e-9)
    assert sets(labels[kept]) == sets(labels[expected])


@settings(max_examples=150, deadline=None)
@given(labels=tables(samples=18), batch=st.integers(1, 5), data=st.data())
def test_batches_keep_what_the_task_update_keeps(labels: Labels, batch: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(0, len(labels)))
    held = data.draw(st.integers(0, size))
    memory = list(range(held))
    for start in range(held, len(labels), batch):
        memory += range(start, min(start + batch, len(labels)))
        memory = naive_memory_update(labels, memory, max(0, len(memory) - size), uniform(labels))
    assert keep_in_batches(labels, size, held=held, batch=batch).tolist() == memory


@settings(deadline=None)
@given(labels=tables(samples=60, labels=300), data=st.data())
def test_keeps_exactly_the_asked_number_in_order_without_doubles(labels: Labels, data: st.DataObject) -> None:
    size = data.draw(st.integers(0, 2 * len(labels)))
    kept = keep(labels, size)
    assert len(kept) == min(size, len(labels))
    assert np.all(np.diff(kept) > 0)


def test_samples_without_labels_go_before_the_last_labelled_one() -> None:
    labels = np.array([[0, 0], [1, 0], [0, 0], [0, 0]], dtype=np.bool_)
    assert keep(labels, 1).tolist() == [1]


def test_samples_that_are_all_equal_go_from_the_lowest_index() -> None:
    assert keep(np.ones((5, 3), dtype=np.bool_), 2).tolist() == [3, 4]


def test_samples_that_all_have_no_label_go_from_the_lowest_index() -> None:
    assert keep(np.zeros((5, 3), dtype=np.bool_), 2).tolist() == [3, 4]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_empty_tables_have_an_answer(shape: tuple[int, int]) -> None:
    assert keep(np.zeros(shape, dtype=np.bool_), 2).tolist() == list(range(shape[0]))[-2:]


def test_size_nought_keeps_nothing_and_a_large_size_keeps_all() -> None:
    labels = np.eye(4, dtype=np.bool_)
    assert keep(labels, 0).tolist() == []
    assert keep(labels, 9).tolist() == [0, 1, 2, 3]


def test_common_labels_make_room_for_rare_ones() -> None:
    labels = np.zeros((100, 2), dtype=np.bool_)
    labels[:90, 0] = True
    labels[90:, 1] = True
    assert labels[keep(labels, 20)].sum(axis=0).tolist() == [10, 10]


def test_allocation_power_one_keeps_the_shares_as_they_come() -> None:
    labels = np.zeros((100, 2), dtype=np.bool_)
    labels[:90, 0] = True
    labels[90:, 1] = True
    target = power_target(labels.sum(axis=0), 1.0)
    assert labels[keep(labels, 20, target=target)].sum(axis=0).tolist() == [18, 2]


def test_label_never_present_changes_nothing() -> None:
    labels = np.random.default_rng(1).random((40, 4)) < 0.3
    wider = np.column_stack([labels, np.zeros(40, dtype=np.bool_)])
    assert keep(wider, 15).tolist() == keep(labels, 15).tolist()


@pytest.mark.parametrize(
    "target", [np.array([1.0, 0.0]), np.array([1.0]), np.array([1.0, np.nan]), np.array([1.0, -1.0])]
)
def test_targets_that_make_no_sense_are_refused(target: Reals) -> None:
    with pytest.raises(ValueError, match="target"):
        keep(np.ones((3, 2), dtype=np.bool_), 1, target=target)


def test_negative_size_is_refused() -> None:
    with pytest.raises(ValueError, match="fewer than no samples"):
        keep(np.ones((3, 2), dtype=np.bool_), -1)


def test_divergence_of_no_label_is_infinite_and_of_balance_is_nought() -> None:
    assert divergence(np.zeros((2, 2), dtype=np.bool_)) == np.inf
    assert divergence(np.eye(3, dtype=np.bool_)) == pytest.approx(0.0)
