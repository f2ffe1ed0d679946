"""True durations, stale and active alarms and downtime, from stored clears and stops."""

from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest

from service.alarm_metrics.models import ExcludedSpan
from service.alarm_metrics.service import AlarmMetrics, AlarmMetricsQuery, AlarmMetricsService
from service.alarm_metrics.timeline import TimelineService
from service.app.service import Service
from service.app.stores import Stores
from service.database.event_row import EventRow, flag_of
from service.machines.events import EventWrite, GapRow
from service.machines.models import Machine
from service.settings import Settings
from tests.service.conftest import NOW, connect_agent, enrolled, raise_alarms
from tests.support.api_client import Client
from wire.enums import AlarmMetricsGrouping
from wire.events import TransitionKind
from wire.identity import MachineId
from wire.timestamps import isoformat, to_us

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
JAM, DOOR, FILM, REEL = 139, 26, 7, 8
CLEARED, STOPPED, RESUMED = TransitionKind.CLEARED, TransitionKind.STOPPED, TransitionKind.RESUMED


@pytest.fixture
def desk(service: Service, stores: Stores, settings: Settings) -> AlarmMetricsService:
    return AlarmMetricsService(
        stores.machines, stores.events, stores.catalogue, service.clock, settings.shift_starts
    )


def store(
    stores: Stores, machine: Machine, *rows: tuple[datetime, int, TransitionKind | None], epoch: UUID | None = None
) -> None:
    used = epoch or uuid4()
    events = [
        EventRow(machine.row_id, used, seq, code, to_us(at), flag_of(kind))
        for seq, (at, code, kind) in enumerate(rows, start=1)
    ]
    stores.events.commit(EventWrite(to_us(NOW), events=events))


@pytest.fixture
def cleared(stores: Stores, filler: Machine) -> Machine:
    """A machine whose alarms clear: one is stale, one active, one was the reason of a stop."""
    at = NOW - 40 * HOUR
    store(
        stores,
        filler,
        (at - HOUR, DOOR, CLEARED),
        (at, REEL, None),
        (NOW - 5 * HOUR, JAM, None),
        (NOW - 5 * HOUR + MINUTE, JAM, STOPPED),
        (NOW - 5 * HOUR + 10 * MINUTE, JAM, CLEARED),
        (NOW - 5 * HOUR + 16 * MINUTE, JAM, RESUMED),
        (NOW - 4 * HOUR, JAM, None),
        (NOW - 4 * HOUR + 2 * MINUTE, JAM, CLEARED),
        (NOW - 3 * HOUR, REEL, CLEARED),
        (NOW - 2 * HOUR, DOOR, None),
        (NOW - HOUR, FILM, STOPPED),
        (NOW - 30 * MINUTE, FILM, RESUMED),
    )
    connect_agent(stores, filler)
    return filler


@pytest.mark.usefixtures("cleared")
def test_durations_stale_and_active_alarms_and_downtime_are_known(desk: AlarmMetricsService) -> None:
    found = desk.compute(AlarmMetricsQuery())
    codes = {one.code: one for one in found.codes}
    jam = codes[JAM]
    assert (jam.median_seconds, jam.longest_seconds) == (360.0, 600.0)
    assert (jam.active_seconds, jam.downtime_seconds) == (720.0, 900.0)
    assert (codes[DOOR].median_seconds, codes[DOOR].active_seconds) == (None, 7200.0)
    assert (codes[FILM].alarms, codes[FILM].downtime_seconds) == (0, 1800.0), "it was never raised"
    assert [(one.code, one.seconds, one.until) for one in found.stale] == [(REEL, 37 * 3600.0, NOW - 3 * HOUR)]
    assert [(one.code, one.seconds, one.until) for one in found.active] == [(DOOR, 7200.0, None)]
    assert (found.total.stale, found.total.active, found.total.downtime_us) == (1, 1, 2_700_000_000)
    assert found.rows[0][1] == found.total


def test_of_a_machine_without_clears_nothing_of_that_is_known(
    desk: AlarmMetricsService, stores: Stores, cleared: Machine
) -> None:
    other = enrolled(stores.enrolments, MachineId("padova", "filler-2"))
    raise_alarms(stores, other, (NOW - HOUR, 5), (NOW - 30 * HOUR, JAM))
    connect_agent(stores, other)
    found = desk.compute(AlarmMetricsQuery(site="padova", machine="filler-2"))
    assert (found.total.stale, found.total.active, found.total.downtime_us) == (None, None, None)
    assert {one.active_seconds for one in found.codes} == {None}
    both: AlarmMetrics = desk.compute(AlarmMetricsQuery(by=AlarmMetricsGrouping.SITE))
    assert (both.rows[0][0].site, both.rows[0][1].stale) == (cleared.id.site, 1)


def test_a_history_without_clears_before_the_agent_is_not_taken_for_active_alarms(
    desk: AlarmMetricsService, stores: Stores, cleared: Machine
) -> None:
    raise_alarms(stores, cleared, *((NOW - hours * HOUR, code) for hours in (60, 90) for code in (5, DOOR)))
    found = desk.compute(AlarmMetricsQuery())
    assert [one.code for one in found.stale] == [REEL]
    assert [one.code for one in found.active] == [DOOR]
    assert found.active[0].since == NOW - 2 * HOUR


def test_beyond_a_gap_and_the_last_message_nothing_is_known(
    desk: AlarmMetricsService, stores: Stores, cleared: Machine
) -> None:
    gap = GapRow(cleared.row_id, uuid4(), 1, 1, to_us(NOW - 90 * MINUTE), to_us(NOW - 80 * MINUTE), "source_lost")
    stores.events.commit(EventWrite(to_us(NOW), gaps=[gap]))
    found = desk.compute(AlarmMetricsQuery())
    door = next(one for one in found.codes if one.code == DOOR)
    assert (found.active, door.active_seconds) == ([], 1800.0)


def test_shelved_alarms_are_left_out(
    desk: AlarmMetricsService, service: Service, stores: Stores, cleared: Machine
) -> None:
    shelved = ExcludedSpan(cleared.id, DOOR, to_us(NOW - 3 * HOUR), to_us(NOW))
    without = AlarmMetricsService(
        stores.machines,
        stores.events,
        stores.catalogue,
        service.clock,
        desk.shifts,
        lambda _since, _until: [shelved],
    )
    assert without.compute(AlarmMetricsQuery()).active == []


def test_the_timeline_says_when_an_alarm_ended_and_what_is_active(
    service: Service, stores: Stores, cleared: Machine
) -> None:
    desk = TimelineService(stores.machines, stores.events, stores.catalogue, service.clock)
    timeline = desk.timeline(cleared.id, None, None)
    assert [(one.code, one.since) for one in timeline.earlier] == [(REEL, NOW - 40 * HOUR)]
    found = timeline.alarms
    assert [(one.code, one.until, one.active) for one in found] == [
        (JAM, NOW - 5 * HOUR + 10 * MINUTE, False),
        (JAM, NOW - 4 * HOUR + 2 * MINUTE, False),
        (DOOR, None, True),
    ]


@pytest.mark.usefixtures("cleared")
def test_exports_have_the_figures(service: Service) -> None:
    client = Client(service)
    lines = b"".join(client.exports.alarms()).decode().splitlines()
    ends = {(line.split(",")[4], line.split(",")[-1]) for line in lines[1:]}
    assert ends == {
        (str(REEL), isoformat(NOW - 3 * HOUR)),
        (str(JAM), isoformat(NOW - 5 * HOUR + 10 * MINUTE)),
        (str(JAM), isoformat(NOW - 4 * HOUR + 2 * MINUTE)),
        (str(DOOR), ""),
    }
    report = client.alarm_metrics.get()
    assert [one.code for one in report.durations] == [FILM, JAM, REEL, DOOR]
    assert (report.counts.stale, report.counts.active, report.total.downtime_seconds) == (1, 1, 2700.0)
    assert b"Alarm 8," in b"".join(client.exports.stale())
    assert b"Alarm 26," in b"".join(client.exports.active())
    head, first, *_ = b"".join(client.exports.top()).decode().splitlines()
    assert (head.split(",")[-1], first.split(",")[-1]) == ("downtime_seconds", "900.0")
