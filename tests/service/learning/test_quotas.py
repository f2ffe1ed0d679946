"""The places of the memory are shared out to the last one, and nobody starves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.learning.strategies import allocate

COUNTS = st.lists(st.integers(0, 400), min_size=1, max_size=20)


@given(available=COUNTS, size=st.integers(20, 3000))
def test_shares_sum_to_the_size_or_to_all_there_is(available: list[int], size: int) -> None:
    assert sum(allocate(size, available)) == min(size, sum(available))


@given(available=COUNTS, size=st.integers(20, 3000))
def test_nobody_gets_more_than_it_has_and_nobody_with_windows_gets_none(available: list[int], size: int) -> None:
    for given_places, count in zip(allocate(size, available), available, strict=True):
        assert given_places <= count
        assert given_places > 0 or count == 0


@given(available=COUNTS, size=st.integers(20, 3000))
def test_whoever_gives_nothing_away_has_at_most_one_place_less_than_any_other(
    available: list[int], size: int
) -> None:
    given_places = allocate(size, available)
    most = max(given_places)
    assert all(
        places == count or places >= most - 1 for places, count in zip(given_places, available, strict=True)
    )


@given(size=st.integers(1, 3000), data=st.data())
def test_old_task_never_needs_back_what_it_has_dropped(size: int, data: st.DataObject) -> None:
    held: list[int] = []
    for windows in data.draw(st.lists(st.integers(1, 5000), min_size=1, max_size=min(size, 20))):
        after = allocate(size, [*held, windows])
        assert all(now <= before for now, before in zip(after, held, strict=False))
        held = after


def test_remainder_goes_one_by_one_to_the_oldest() -> None:
    assert allocate(11, [100, 100, 100]) == [4, 4, 3]


def test_small_task_gives_its_rest_away() -> None:
    assert allocate(2000, [920, 5000]) == [920, 1080]
    assert allocate(30, [4, 100, 2]) == [4, 24, 2]


def test_memory_smaller_than_the_fleet_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot keep one of each"):
        allocate(2, [5, 5, 5])
