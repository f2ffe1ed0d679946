"""Counting in classes: one by one and all at once come to the same, on both sides of every bound."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.http.histogram import Histogram

BOUNDS = (0.5, 1.0, 60.0)


def test_what_is_exactly_at_a_bound_counts_below_it() -> None:
    histogram = Histogram(BOUNDS)
    histogram.add_all([0.5, 1.0, 1.0000001, 60.0, 61.0])
    counted = histogram.read()
    assert counted.below == (1, 2, 4, 5)
    assert counted.all == 5


def test_a_lag_below_nought_counts_as_nought() -> None:
    histogram = Histogram(BOUNDS)
    histogram.add_all([-3_000_000, 2_000_000], unit=1e-6)
    assert histogram.read().below == (1, 1, 2, 2)
    assert histogram.read().total == pytest.approx(2.0)


@given(st.lists(st.floats(0, 100, allow_nan=False)))
def test_one_by_one_and_all_at_once_come_to_the_same(values: list[float]) -> None:
    singly, together = Histogram(BOUNDS), Histogram(BOUNDS)
    for value in values:
        singly.add(value)
    together.add_all(values)
    assert singly.read().below == together.read().below
    assert singly.read().total == pytest.approx(together.read().total)
