"""Spans from raise to clear: each raise with the next clear of its code, and nothing known beyond a gap."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forecasting.series import AlarmSeries
from service.alarm_metrics.durations import Spans, spans
from service.alarm_metrics.time_bins import TimeBins

END = 100
MOMENTS = st.lists(st.tuples(st.integers(0, END - 1), st.integers(1, 3)), max_size=25)


def series(*rows: tuple[int, int]) -> AlarmSeries:
    table = np.array(sorted(rows), dtype=np.int64).reshape(-1, 2)
    return AlarmSeries(table[:, 0], table[:, 1])


def paired(raised: list[tuple[int, int]], cleared: list[tuple[int, int]], *gaps: int) -> Spans:
    return spans(series(*raised), series(*cleared), np.array(gaps, dtype=np.int64), END)


def shown(found: Spans) -> list[tuple[int, int, int, str]]:
    rows = zip(found.codes, found.starts, found.ends, found.ended, found.is_open, strict=True)
    return [
        (int(code), int(start), int(end), "ended" if ended else "open" if is_open else "gap")
        for code, start, end, ended, is_open in rows
    ]


def by_hand(raised: list[tuple[int, int]], cleared: list[tuple[int, int]]) -> list[tuple[int, int, int, str]]:
    """Follow each code moment by moment."""
    found = []
    for code in {code for _, code in raised}:
        since = None
        for at in range(END):
            is_raised, is_cleared = (at, code) in raised, (at, code) in cleared
            if is_cleared and since is not None:
                found.append((code, since, at, "ended"))
                since, is_cleared = None, False
            if is_raised and since is None:
                since = at
            if is_cleared and since == at:
                found.append((code, at, at, "ended"))
                since = None
        if since is not None:
            found.append((code, since, END, "open"))
    return sorted(found, key=lambda row: (row[1], row[0], row[2]))


@given(raised=MOMENTS, cleared=MOMENTS)
def test_pairs_are_those_of_following_each_code_by_hand(
    raised: list[tuple[int, int]], cleared: list[tuple[int, int]]
) -> None:
    found = sorted(shown(paired(raised, cleared)), key=lambda row: (row[1], row[0], row[2]))
    assert found == by_hand(raised, cleared)


def test_at_a_gap_the_end_is_unknown_and_a_later_raise_begins_anew() -> None:
    found = paired([(10, 1), (40, 1), (50, 2)], [(60, 1)], 30)
    assert shown(found) == [(1, 10, 30, "gap"), (1, 40, 60, "ended"), (2, 50, END, "open")]
    ends, active = found.of_alarms(series((10, 1), (45, 1), (50, 2), (70, 1)))
    assert (ends.tolist(), active.tolist()) == ([-1, 60, -1, -1], [False, False, True, False])


def test_time_in_bins_is_the_part_inside_of_them() -> None:
    found = paired([(10, 1), (50, 2)], [(30, 1)])
    bins = TimeBins(np.array([0, 60]), np.array([20, 70]), np.zeros(2, dtype=np.int64))
    assert found.overlap(bins).tolist() == [10, 10]
