"""Late events: what was counted without them is counted again, soon but not at every one of them."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.app.service import Service
from service.app.stores import Stores
from service.forecasts.base_rates import BaseRates
from service.ingest.service import IncomingMessage, IngestBatch, IngestResult, TimePolicy, commit
from service.machines.models import Machine
from service.machines.store import MachineCache
from tests.service.conftest import EPOCH, NOW, connect_agent, raise_alarms, small_model
from wire.timestamps import isoformat

EVENTS = "alarmcast/v1/padova/filler-1/events"
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)


def take(stores: Stores, age: timedelta) -> IngestResult:
    body = f'{{"epoch":"{EPOCH}","events":[{{"seq":1,"code":139,"at":"{isoformat(NOW - age)}"}}]}}'
    intake = IngestBatch(NOW, TimePolicy(), MachineCache(stores.machines))
    intake.add(IncomingMessage(EVENTS, body.encode()))
    return commit(intake, recorder=stores.events)


@pytest.mark.parametrize(("age", "late"), [(59 * MINUTE, False), (61 * MINUTE, True)])
def test_an_event_of_an_earlier_hour_is_late(
    stores: Stores,
    filler: Machine,
    age: timedelta,
    late: bool,  # noqa: FBT001
) -> None:
    assert take(stores, age).late == ({filler.id} if late else set())


def test_base_rates_follow_late_events_within_a_quarter_of_an_hour(stores: Stores, filler: Machine) -> None:
    raise_alarms(stores, filler, (NOW - 10 * DAY, 137), (NOW - DAY, 137))
    model, rates = small_model(targets=(139,)), BaseRates(stores.events)

    def rate(at_minutes: int) -> float:
        found = rates.get(filler, NOW + at_minutes * MINUTE, model)
        assert found is not None
        return float(found[0])

    assert rate(0) == 0.0
    raise_alarms(stores, filler, *((NOW - days * DAY, 139) for days in range(1, 10)))
    assert rate(20) == 0.0, "nothing said that something was late"
    rates.note_late([filler.id])
    assert rate(14) == 0.0, "a backlog comes in many pieces"
    assert rate(16) > 0.2


@pytest.mark.usefixtures("champion")
def test_the_newest_forecast_is_made_anew_when_events_of_its_window_come_late(
    service: Service, stores: Stores, filler: Machine
) -> None:
    connect_agent(stores, filler)
    raise_alarms(stores, filler, (NOW - 2 * DAY, 137))
    desk = replace(service.forecasts.service, base_rates=BaseRates(stores.events))
    before = service.forecasts.cache.fresh_for([filler])[0].forecast
    service.forecasts.cache.invalidate(take(stores, timedelta(hours=20)).affected)
    after = service.forecasts.cache.fresh_for([filler])[0].forecast
    assert (before.events_seen, after.events_seen) == (0, 1)
    assert after.alarms != before.alarms
    assert desk.forecast_now([filler], after.as_of)[0].forecast.events_seen == 1
