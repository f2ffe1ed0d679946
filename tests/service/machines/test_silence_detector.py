"""Silence by rhythm: nights and weekends are none, a working day without alarms is one."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from forecasting.series import AlarmSeries
from service.app.stores import Stores
from service.machines.events import EventWrite
from service.machines.models import Agent, Machine
from service.machines.silence import SilenceDetector, fit_profile
from service.messaging.bus import ChangeBus, EventsStored
from tests.service.conftest import EPOCH, FILLER, connect_agent, raise_alarms
from wire.timestamps import to_us

MONDAY = datetime(2026, 11, 16, tzinfo=UTC)


def shifts(weeks: int, until: datetime = MONDAY) -> list[tuple[datetime, int]]:
    """Alarms every few minutes from six to two in the afternoon, on weekdays only."""
    rng = np.random.default_rng(3)
    found = []
    for day in range(7 * weeks):
        start = until - timedelta(days=day + 1)
        if start.weekday() < 5:
            minutes = np.sort(rng.uniform(6 * 60, 14 * 60, 60))
            found += [(start + timedelta(minutes=float(minute)), 139) for minute in minutes]
    return sorted(found)


@pytest.mark.parametrize(
    ("now", "silent"),
    [
        (MONDAY + timedelta(hours=5), False),  # the whole weekend is over, and it was a weekend
        (MONDAY + timedelta(hours=7), False),
        (MONDAY + timedelta(hours=12), True),  # six hours of work, and not a word
        (MONDAY + timedelta(days=5), True),
    ],
)
def test_a_machine_is_silent_when_its_working_hours_pass_without_a_word(
    stores: Stores,
    filler: Machine,
    now: datetime,
    silent: bool,  # noqa: FBT001
) -> None:
    raise_alarms(stores, filler, *shifts(6))
    connect_agent(stores, filler, at=now)
    found = SilenceDetector(stores.machines, stores.events).refresh(now)
    assert [one.machine for one in found] == ([FILLER] if silent else [])


def test_a_machine_that_speaks_again_is_silent_no_more(stores: Stores, filler: Machine) -> None:
    raise_alarms(stores, filler, *shifts(6))
    watch = SilenceDetector(stores.machines, stores.events)
    now = MONDAY + timedelta(hours=12)
    connect_agent(stores, filler, at=now + timedelta(minutes=1))
    assert watch.refresh(now)
    raise_alarms(stores, filler, (now - timedelta(minutes=5), 139))
    assert watch.refresh(now + timedelta(minutes=1)) == watch.silent == []


def test_a_rhythm_outlives_weeks_of_silence(stores: Stores, filler: Machine) -> None:
    raise_alarms(stores, filler, *shifts(6))
    watch = SilenceDetector(stores.machines, stores.events)
    for days in (1, 30, 58, 90):
        now = MONDAY + timedelta(days=days, hours=12)
        connect_agent(stores, filler, at=now)
        assert watch.refresh(now), days


@pytest.mark.parametrize(
    "agent",
    [
        None,
        Agent(online=False, last_seen_at=MONDAY + timedelta(hours=12), epoch=EPOCH, spooled=0),
        Agent(online=True, last_seen_at=MONDAY + timedelta(hours=12), epoch=EPOCH, spooled=214),
        Agent(online=True, last_seen_at=MONDAY + timedelta(hours=7), epoch=EPOCH, spooled=0),
    ],
    ids=["never connected", "offline", "alarms wait at the machine", "last message before the working hours"],
)
def test_a_machine_whose_alarms_cannot_have_been_received_is_not_silent(
    stores: Stores, filler: Machine, agent: Agent | None
) -> None:
    raise_alarms(stores, filler, *shifts(6))
    if agent is not None:
        stores.events.commit(EventWrite(to_us(agent.last_seen_at), agent_states={filler.row_id: agent}))
    assert SilenceDetector(stores.machines, stores.events).refresh(MONDAY + timedelta(hours=12)) == []


def test_a_silent_machine_is_judged_again_when_something_arrives_for_it(stores: Stores, filler: Machine) -> None:
    bus, arrived = ChangeBus(), EventsStored(frozenset({FILLER}))
    raise_alarms(stores, filler, *shifts(6))
    watch = SilenceDetector(stores.machines, stores.events)
    watch.subscribe_to(bus)
    now = MONDAY + timedelta(hours=12)
    connect_agent(stores, filler, at=now)
    found = watch.refresh(now)
    assert [one.machine for one in found] == [FILLER]
    assert watch.current(now) is found, "nothing has arrived"
    raise_alarms(stores, filler, (MONDAY - timedelta(days=9), 139))
    bus.publish(arrived)
    assert watch.current(now) == found, "what was raised before the silence does not end it"
    raise_alarms(stores, filler, (now - timedelta(minutes=5), 139))
    bus.publish(arrived)
    assert watch.current(now) == watch.silent == []


def test_of_a_machine_that_is_hardly_known_nothing_is_said() -> None:
    few = shifts(6)[:20]
    short = [(MONDAY - timedelta(hours=20) + timedelta(minutes=10 * number), 1) for number in range(100)]
    assert fit_profile(AlarmSeries.from_alarms(few), MONDAY) is None
    assert fit_profile(AlarmSeries.from_alarms(short), MONDAY) is None
