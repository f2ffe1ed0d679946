"""Acks name exactly what is committed."""

import itertools
from datetime import UTC, datetime
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from wire.acks import MAX_RANGES, acks, merge_ranges
from wire.codec import MAX_BYTES, encode

spans = st.tuples(st.integers(1, 60), st.integers(0, 5)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(st.lists(spans, max_size=30))
def test_folding_keeps_exactly_the_same_numbers(given_spans: list[tuple[int, int]]) -> None:
    def numbers(ranges: list[tuple[int, int]]) -> set[int]:
        return {number for first, last in ranges for number in range(first, last + 1)}

    folded = merge_ranges(given_spans)
    assert numbers(folded) == numbers(given_spans)
    assert all(earlier[1] + 1 < later[0] for earlier, later in itertools.pairwise(folded))


def test_a_range_larger_than_memory_is_folded_without_being_expanded() -> None:
    assert merge_ranges([(1, 2**62), (5, 7), (2**62 + 1, 2**63 - 1)]) == [(1, 2**63 - 1)]


def test_the_largest_numbers_there_are_never_make_an_ack_above_the_limit_of_a_message() -> None:
    top = 2**63 - 1
    scattered = [(top - 2 * number, top - 2 * number) for number in range(2 * MAX_RANGES + 1)]
    now = datetime(2026, 11, 16, 8, 7, 0, 123456, tzinfo=UTC)
    parts = list(acks(UUID(int=2**128 - 1), scattered, now))
    assert len(parts) == 3
    assert max(len(encode(part)) for part in parts) <= MAX_BYTES
    assert [seqs for part in parts for seqs in part.seqs] == sorted(scattered)


def test_an_ack_of_nothing_is_still_an_ack() -> None:
    (ack,) = acks(UUID(int=0), [], datetime(2026, 11, 16, tzinfo=UTC))
    assert ack.seqs == []
