"""Own-history figures: each says what it is called, and none looks ahead."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from forecasting.history import HistorySpec, machine_history, own_history
from forecasting.series import AlarmSeries, micros

START = datetime(2026, 1, 5, tzinfo=UTC)
HORIZON = timedelta(hours=8)
SPEC = HistorySpec()
ALARMS = st.lists(
    st.tuples(st.integers(0, 40 * 1440).map(lambda m: START + timedelta(minutes=m)), st.integers(1, 3)),
    max_size=60,
)


def figures(
    alarms: list[tuple[datetime, int]], at: datetime, codes: list[int], since: datetime = START
) -> NDArray[np.float32]:
    rows: NDArray[np.float32] = own_history(
        AlarmSeries.of(alarms),
        np.array([micros(at)]),
        np.array(codes),
        since=micros(since),
        horizon=HORIZON,
        spec=SPEC,
    )
    return np.asarray(rows[0])


@settings(max_examples=200, deadline=None)
@given(alarms=ALARMS, hour=st.integers(1, 40 * 24), later=ALARMS)
def test_figures_never_look_ahead(
    alarms: list[tuple[datetime, int]], hour: int, later: list[tuple[datetime, int]]
) -> None:
    at = START + timedelta(hours=hour)
    past = [alarm for alarm in alarms if alarm[0] < at]
    future = [alarm for alarm in later if alarm[0] >= at]
    assert np.array_equal(figures(past, at, [1, 2]), figures(past + future, at, [1, 2]))


@settings(max_examples=100, deadline=None)
@given(alarms=ALARMS, hour=st.integers(1, 40 * 24))
def test_figures_need_no_more_than_their_lookback(alarms: list[tuple[datetime, int]], hour: int) -> None:
    at = START + timedelta(hours=hour)
    recent = [alarm for alarm in alarms if alarm[0] >= at - SPEC.lookback]
    assert np.array_equal(figures(alarms, at, [1, 2]), figures(recent, at, [1, 2]))


def test_code_never_seen_has_only_noughts() -> None:
    assert not figures([(START, 1)], START + timedelta(days=1), [2]).any()


def test_recency_decays_from_one_and_counts_grow() -> None:
    at = START + timedelta(days=2)
    row = figures([(at - timedelta(hours=8), 1), (at - timedelta(hours=30), 1)], at, [1])[0]
    decays, spans = row[: len(SPEC.decays)], row[len(SPEC.decays) :][: len(SPEC.spans)]
    assert decays[2] == pytest.approx(np.exp(-1))
    assert np.all(np.diff(decays) > 0)
    assert spans == pytest.approx(np.log1p([0, 1, 1, 2, 2]))


@settings(max_examples=100, deadline=None)
@given(alarms=ALARMS, hour=st.integers(9, 40 * 24))
def test_rate_is_the_share_of_past_horizons_that_held_the_code(
    alarms: list[tuple[datetime, int]], hour: int
) -> None:
    at = START + timedelta(hours=hour)
    times = np.array([micros(moment) for moment, code in alarms if code == 1], dtype=np.int64)
    begin = max(micros(at - timedelta(days=7)), micros(START))
    starts = np.linspace(begin, micros(at - HORIZON), 4001)
    held = [np.any((times >= start) & (times < start + HORIZON / timedelta(microseconds=1))) for start in starts]
    rate = figures(alarms, at, [1])[0][len(SPEC.decays) + len(SPEC.spans)]
    assert rate == pytest.approx(np.mean(held), abs=0.02)


def test_seasons_say_whether_the_same_horizon_of_earlier_days_held_the_code() -> None:
    at = START + timedelta(days=30)
    yesterday, last_week = at - timedelta(days=1) + timedelta(hours=7), at - timedelta(days=7)
    row = figures([(yesterday, 1), (last_week, 1), (at - timedelta(days=14, minutes=1), 1)], at, [1])[0]
    assert row[-len(SPEC.seasons) :].tolist() == [1, 1, 0, 0, 0]


def test_machine_history_adds_all_codes_up_and_says_how_much_was_heard() -> None:
    at = START + timedelta(days=15)
    series = AlarmSeries.of([(at - timedelta(hours=2), 1), (at - timedelta(hours=1), 2)])
    together = machine_history(series, np.array([micros(at)]), since=micros(START), horizon=HORIZON, spec=SPEC)[0]
    merged = AlarmSeries(series.times, np.ones(2, dtype=np.int64))
    same = own_history(
        merged, np.array([micros(at)]), np.array([1]), since=micros(START), horizon=HORIZON, spec=SPEC
    )
    assert np.array_equal(together[:-1], same[0, 0])
    assert together[-1] == pytest.approx(0.5)
