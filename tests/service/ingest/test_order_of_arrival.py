"""Order of arrival: the same events, in any order and any batching, give the same windows and forecast."""

import json
import random
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forecasting.features import alarm_counts, counts_between
from forecasting.ragged import FleetSeries
from forecasting.series import AlarmSeries
from forecasting.vocabulary import Columns
from forecasting.window import WindowSpec, coverage, input_window, label_window
from service.app.service import Service
from service.app.stores import Stores
from service.forecasts.base_rates import BaseRates
from service.ingest.service import IncomingMessage, IngestBatch, TimePolicy, commit
from service.machines.models import Machine
from service.machines.store import MachineCache
from tests.service.conftest import FILLER, NOW
from wire.forecasts import Forecast
from wire.timestamps import isoformat, to_us

SPEC = WindowSpec(timedelta(hours=6), timedelta(hours=2))
TOPIC = "alarmcast/v1/padova/filler-1/events"

# Few moments and few codes, so that events often fall on one moment and on the edges of windows.
moments = st.integers(-60 * 24, 60 * 24).map(lambda minutes: NOW + timedelta(minutes=minutes))
alarms = st.lists(st.tuples(moments, st.integers(1, 6)), max_size=60)


@given(alarms=alarms, order=st.randoms(use_true_random=False), at=moments)
def test_features_depend_on_the_events_and_not_on_their_order(
    alarms: list[tuple[datetime, int]], order: random.Random, at: datetime
) -> None:
    shuffled = alarms.copy()
    order.shuffle(shuffled)
    one, other = AlarmSeries.from_alarms(alarms), AlarmSeries.from_alarms(shuffled)
    columns = Columns((1, 2, 3, 4))
    for cut in (input_window, label_window):
        assert cut(one, at, SPEC).codes.tolist() == cut(other, at, SPEC).codes.tolist()
    assert (
        alarm_counts(input_window(one, at, SPEC), columns).tolist()
        == alarm_counts(input_window(other, at, SPEC), columns).tolist()
    )


@given(alarms=alarms, at=moments)
def test_evidence_and_outcome_split_time_at_the_moment_asked_about(
    alarms: list[tuple[datetime, int]], at: datetime
) -> None:
    series = AlarmSeries.from_alarms(alarms)
    before, after = input_window(series, at, SPEC), label_window(series, at, SPEC)
    expected_before = sorted(alarm for alarm in alarms if at - SPEC.lookback <= alarm[0] < at)
    expected_after = sorted(alarm for alarm in alarms if at <= alarm[0] < at + SPEC.horizon)
    assert before.codes.tolist() == [code for _, code in expected_before]
    assert after.codes.tolist() == [code for _, code in expected_after]


@given(alarms=alarms, ats=st.lists(moments, min_size=1, max_size=5))
def test_many_windows_at_once_are_the_same_as_one_by_one(
    alarms: list[tuple[datetime, int]], ats: list[datetime]
) -> None:
    series, codes = AlarmSeries.from_alarms(alarms), np.arange(1, 7)
    ends = np.array([to_us(at) for at in ats])
    starts = ends - to_us(NOW) + to_us(NOW - SPEC.lookback)
    counts = counts_between(series, starts, ends, codes)
    for row, at in zip(counts, ats, strict=True):
        window = FleetSeries.from_series([input_window(series, at, SPEC)])
        seen = window.codes[window.run_starts]
        assert row.tolist() == [int((seen == code).sum()) for code in codes]


@given(
    spans=st.lists(st.tuples(moments, moments).map(sorted), max_size=8),
    order=st.randoms(use_true_random=False),
    at=moments,
)
def test_coverage_depends_on_the_gaps_and_not_on_their_order_or_cuts(
    spans: list[list[datetime]], order: random.Random, at: datetime
) -> None:
    deaf = [(start, end) for start, end in spans]
    halves = [part for a, b in deaf for part in ((a, a + (b - a) / 2), (a + (b - a) / 2, b))]
    order.shuffle(halves)
    heard = (NOW - timedelta(days=1), NOW + timedelta(days=1))
    whole = coverage(at, SPEC, observed=heard, unobserved=deaf)
    assert whole == pytest.approx(coverage(at, SPEC, observed=heard, unobserved=halves))
    assert 0.0 <= whole <= 1.0


def numbered(alarms: list[tuple[datetime, int]]) -> list[dict[str, object]]:
    return [{"seq": seq, "code": code, "at": isoformat(at)} for seq, (at, code) in enumerate(alarms, start=1)]


def cut(rows: list[dict[str, object]], sizes: list[int]) -> list[list[dict[str, object]]]:
    batches, first = [], 0
    for size in [*sizes, len(rows)]:
        if first < len(rows):
            batches.append(rows[first : first + size])
            first += size
    return batches


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    alarms=st.lists(
        st.tuples(st.integers(1, 8).map(lambda m: NOW - timedelta(minutes=m)), st.sampled_from([26, 137, 139])),
        min_size=1,
        max_size=40,
    ),
    order=st.randoms(use_true_random=False),
    sizes=st.lists(st.integers(1, 15), max_size=6),
    repeats=st.integers(0, 3),
)
@pytest.mark.usefixtures("champion")
def test_the_same_events_in_any_order_and_batching_give_the_same_forecast(
    service: Service,
    stores: Stores,
    filler: Machine,
    alarms: list[tuple[datetime, int]],
    order: random.Random,
    sizes: list[int],
    repeats: int,
) -> None:
    """Once in order and in one message, once shuffled, cut into batches and some of them sent again."""
    expected = forecast_after(service, stores, filler, [numbered(sorted(alarms))])
    order.shuffle(alarms)
    batches = cut(numbered(alarms), sizes)
    batches += [order.choice(batches) for _ in range(repeats)]
    order.shuffle(batches)
    assert forecast_after(service, stores, filler, batches) == expected


def forecast_after(
    service: Service, stores: Stores, filler: Machine, batches: list[list[dict[str, object]]]
) -> Forecast:
    with stores.database.write() as connection:
        connection.exec_driver_sql("DELETE FROM events")
    epoch = str(uuid4())
    for batch in batches:
        intake = IngestBatch(NOW, TimePolicy(), MachineCache(stores.machines))
        intake.add(IncomingMessage(TOPIC, json.dumps({"epoch": epoch, "events": batch}).encode()))
        service.forecasts.cache.invalidate(commit(intake, recorder=stores.events).affected)
    desk = replace(
        service.forecasts.service, base_rates=BaseRates(stores.events)
    )  # which remember nothing of the other order
    made = desk.forecast_now([filler], NOW)[0].forecast
    assert made.machine == FILLER.machine
    return made
