"""Acks name exactly what is committed."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from wire.acks import fold

spans = st.tuples(st.integers(1, 60), st.integers(0, 5)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(st.lists(spans, max_size=30))
def test_folding_keeps_exactly_the_same_numbers(given_spans: list[tuple[int, int]]) -> None:
    def numbers(ranges: list[tuple[int, int]]) -> set[int]:
        return {number for first, last in ranges for number in range(first, last + 1)}

    folded = fold(given_spans)
    assert numbers(folded) == numbers(given_spans)
    assert all(earlier[1] + 1 < later[0] for earlier, later in itertools.pairwise(folded))


def test_a_range_larger_than_memory_is_folded_without_being_expanded() -> None:
    assert fold([(1, 2**62), (5, 7), (2**62 + 1, 2**63 - 1)]) == [(1, 2**63 - 1)]
