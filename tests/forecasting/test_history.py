"""Own-history figures: each says what it is called, and none looks ahead."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from forecasting.history import (
    HistorySpec,
    QueryPoints,
    code_recency_features,
    fleet_code_recency_features,
    fleet_machine_activity_features,
    machine_activity_features,
)
from forecasting.ragged import FleetSeries
from forecasting.series import AlarmSeries
from forecasting.vocabulary import Columns
from wire.timestamps import to_us

START = datetime(2026, 1, 5, tzinfo=UTC)
HORIZON = timedelta(hours=8)
SPEC = HistorySpec()
Alarms = list[tuple[datetime, int]]
ALARMS = st.lists(
    st.tuples(st.integers(0, 40 * 1440).map(lambda minute: START + timedelta(minutes=minute)), st.integers(1, 3)),
    max_size=60,
)


def past(at: datetime, since: datetime = START) -> QueryPoints:
    return QueryPoints(np.array([to_us(at)]), since=to_us(since), horizon=HORIZON, spec=SPEC)


def figures(alarms: Alarms, at: datetime, codes: list[int]) -> NDArray[np.float32]:
    return np.asarray(code_recency_features(AlarmSeries.from_alarms(alarms), past(at), np.array(codes))[0])


def machine(alarms: Alarms, at: datetime) -> NDArray[np.float32]:
    return np.asarray(machine_activity_features(AlarmSeries.from_alarms(alarms), past(at))[0])


def named(row: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
    edges = np.cumsum(
        [0, len(SPEC.decays), len(SPEC.alarms), len(SPEC.rates), len(SPEC.days), len(SPEC.weeks) + 1]
    )
    names = ("decays", "alarms", "rates", "days", "shares")
    return {name: row[a:b] for name, a, b in zip(names, edges[:-1], edges[1:], strict=True)}


@settings(max_examples=200, deadline=None)
@given(alarms=ALARMS, hour=st.integers(1, 40 * 24), later=ALARMS)
def test_figures_never_look_ahead(alarms: Alarms, hour: int, later: Alarms) -> None:
    at = START + timedelta(hours=hour)
    seen = [alarm for alarm in alarms if alarm[0] < at]
    future = [alarm for alarm in later if alarm[0] >= at]
    assert np.array_equal(figures(seen, at, [1, 2]), figures(seen + future, at, [1, 2]))
    assert np.array_equal(machine(seen, at), machine(seen + future, at))


@settings(max_examples=200, deadline=None)
@given(alarms=ALARMS, hour=st.integers(1, 40 * 24))
def test_figures_need_no_more_than_their_lookback(alarms: Alarms, hour: int) -> None:
    at = START + timedelta(hours=hour)
    recent = [alarm for alarm in alarms if alarm[0] >= at - SPEC.lookback]
    assert np.array_equal(figures(alarms, at, [1, 2]), figures(recent, at, [1, 2]))
    assert np.array_equal(machine(alarms, at), machine(recent, at))


@settings(max_examples=100, deadline=None)
@given(alarms=ALARMS, hours=st.lists(st.integers(1, 40 * 24), min_size=1, max_size=5))
def test_many_moments_at_once_are_each_alone(alarms: Alarms, hours: list[int]) -> None:
    at = [START + timedelta(hours=hour) for hour in hours]
    together = QueryPoints(np.array([to_us(moment) for moment in at]), to_us(START), HORIZON, SPEC)
    series = AlarmSeries.from_alarms(alarms)
    for place, moment in enumerate(at):
        assert np.array_equal(
            code_recency_features(series, together, np.array([1, 3]))[place], figures(alarms, moment, [1, 3])
        )
        assert np.array_equal(machine_activity_features(series, together)[place], machine(alarms, moment))


def test_code_never_seen_has_only_noughts() -> None:
    assert not figures([(START, 1)], START + timedelta(days=1), [2]).any()
    assert figures([(START, 1)], START + timedelta(days=1), [2]).shape == (1, SPEC.width)


def test_recency_fades_in_time() -> None:
    at = START + timedelta(days=2)
    fading = named(figures([(at - timedelta(hours=8), 1), (at - timedelta(hours=30), 1)], at, [1])[0])["decays"]
    assert fading[2] == pytest.approx(np.exp(-1))
    assert np.all(np.diff(fading) > 0)


def test_recency_fades_in_alarms_of_other_codes_repeats_collapsed() -> None:
    at = START + timedelta(days=2)
    others = [(at - timedelta(minutes=60 - minute), 2 + (minute // 4) % 2) for minute in range(20)]
    row = named(figures([(at - timedelta(hours=8), 1), *others], at, [1])[0])
    assert row["alarms"] == pytest.approx(np.exp(-5 / np.array(SPEC.alarms)))


@settings(max_examples=100, deadline=None)
@given(alarms=ALARMS, hour=st.integers(9, 40 * 24))
def test_rate_is_the_share_of_past_horizons_that_held_the_code(alarms: Alarms, hour: int) -> None:
    at = START + timedelta(hours=hour)
    times = np.array([to_us(moment) for moment, code in alarms if code == 1], dtype=np.int64)
    begin = max(to_us(at - timedelta(days=7)), to_us(START))
    starts = np.linspace(begin, to_us(at - HORIZON), 4001)
    held = [np.any((times >= start) & (times < start + HORIZON / timedelta(microseconds=1))) for start in starts]
    assert named(figures(alarms, at, [1])[0])["rates"][0] == pytest.approx(np.mean(held), abs=0.02)


def test_same_horizon_of_earlier_days_is_remembered() -> None:
    at = START + timedelta(days=30)
    yesterday, last_week = at - timedelta(days=1) + timedelta(hours=7), at - timedelta(days=7)
    row = named(figures([(yesterday, 1), (last_week, 1), (at - timedelta(days=14, minutes=1), 1)], at, [1])[0])
    assert row["days"].tolist() == [1, 1, 0, 0, 0]
    assert row["shares"][:2] == pytest.approx([2 / 7, 2 / 28])


def test_shares_count_only_days_that_were_heard() -> None:
    at = START + timedelta(days=3)
    row = named(figures([(at - timedelta(days=1), 1)], at, [1])[0])
    assert row["shares"][:2] == pytest.approx([1 / 3, 1 / 3])


def test_machine_history_counts_all_codes_and_says_how_much_was_heard() -> None:
    at = START + timedelta(days=15)
    row = machine([(at - timedelta(hours=2), 1), (at - timedelta(hours=1), 2)], at)
    counts = row[len(SPEC.decays) :][: len(SPEC.spans)]
    assert counts == pytest.approx(np.log1p([1, 2, 2, 2, 2]))
    assert row[-1] == pytest.approx(0.5)


def test_machine_works_since_its_last_pause_and_not_while_it_pauses() -> None:
    at = START + timedelta(days=2)
    alarms = [(at - timedelta(hours=hours), 1) for hours in (20, 6, 3, 1)]
    assert machine(alarms, at)[-4:-1] == pytest.approx([np.exp(-6 / 8), np.log1p(6), np.log1p(3)])
    assert machine(alarms, at + timedelta(hours=5))[-4:-1].tolist() == [0, 0, 0]


@settings(max_examples=100, deadline=None)
@given(machines=st.lists(st.tuples(ALARMS, st.integers(0, 40 * 24)), min_size=1, max_size=5))
def test_a_fleet_is_read_as_its_machines_are_one_by_one(machines: list[tuple[Alarms, int]]) -> None:
    at, codes = START + timedelta(days=35), (3, 7, 1)
    series = [AlarmSeries.from_alarms(alarms) for alarms, _ in machines]
    since = [START + timedelta(hours=hours) for _, hours in machines]
    fleet = FleetSeries.from_series(series)
    moments, heard = np.full(len(series), to_us(at)), np.array([to_us(one) for one in since])
    together = QueryPoints(moments, since=heard, horizon=HORIZON, spec=SPEC)
    own, whole = (
        fleet_code_recency_features(fleet, together, Columns(codes)),
        fleet_machine_activity_features(fleet, together),
    )
    for place, (one, first) in enumerate(zip(series, since, strict=True)):
        alone = past(at, first)
        assert np.array_equal(own[place], code_recency_features(one, alone, np.array(codes))[0])
        assert np.array_equal(whole[place], machine_activity_features(one, alone)[0])
