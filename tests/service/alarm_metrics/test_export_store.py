"""Alarms read from the oldest on, page by page, on SQLite and on PostgreSQL alike."""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Engine, event

from service.alarm_metrics.export_store import AlarmExports
from service.database.engine import Database
from service.database.event_row import FROM_THE_FUTURE, IN_TIME, TOO_OLD, EventRow
from service.learning.enrolment_store import EnrolmentStore
from service.machines.event_store import EventStore
from service.machines.events import EventWrite, PageQuery
from service.machines.models import Machine
from tests.service.conftest import enrolled
from wire.identity import MachineId
from wire.timestamps import to_us

AT = datetime(2026, 11, 16, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def machine(database: Database) -> Machine:
    """A machine with forty alarms that came in any order, several of one moment, every fifth of them flagged."""
    found = enrolled(EnrolmentStore(database), MachineId("padova", "filler-1"))
    other = enrolled(EnrolmentStore(database), MachineId("padova", "filler-2"))
    epoch, flags = uuid4(), (IN_TIME, IN_TIME, IN_TIME, TOO_OLD, FROM_THE_FUTURE)
    rows = [
        EventRow(found.row_id, epoch, n, n % 3, to_us(AT + n // 4 * MINUTE), flags[n % 5]) for n in range(1, 41)
    ]
    random.Random(1).shuffle(rows)  # noqa: S311 - an order, not a secret
    rows.append(EventRow(other.row_id, uuid4(), 1, 9, to_us(AT), IN_TIME))
    EventStore(database).commit(EventWrite(to_us(AT), events=rows))
    return found


@pytest.mark.parametrize("page", [1, 3, 7, 2000])
def test_every_alarm_comes_once_and_in_order_whatever_the_page(
    database: Database, machine: Machine, page: int
) -> None:
    found = list(AlarmExports(database, page).alarms(machine, AT, AT + 60 * MINUTE))
    assert len(found) == 40
    assert [one.at for one in found] == sorted(one.at for one in found)
    assert found == list(AlarmExports(database).alarms(machine, AT, AT + 60 * MINUTE))
    flags = [one.flag for one in found]
    assert (flags.count("too_old"), flags.count("from_the_future"), flags.count(None)) == (8, 8, 24)


def test_the_span_is_half_open_and_a_code_can_be_chosen(database: Database, machine: Machine) -> None:
    exports = AlarmExports(database, page=2)
    part = list(exports.alarms(machine, AT + MINUTE, AT + 2 * MINUTE))
    assert [one.at for one in part] == [AT + MINUTE] * 4
    of_code = list(exports.alarms(machine, AT, AT + 60 * MINUTE, code=2))
    assert {one.code for one in of_code} == {2}
    assert len(of_code) == 13
    assert list(exports.alarms(machine, AT + 60 * MINUTE, AT + 90 * MINUTE)) == []


def test_pages_and_exports_go_through_an_index_and_never_through_all_events(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'alarmcast.sqlite3'}")
    database.upgrade()
    machine = enrolled(EnrolmentStore(database), MachineId("padova", "filler-1"))
    asked: list[tuple[str, Any]] = []

    @event.listens_for(Engine, "before_cursor_execute")
    def note(*heard: Any) -> None:
        asked.append((heard[2], heard[3]))

    try:
        list(AlarmExports(database).alarms(machine, AT, AT + MINUTE, code=3))
        for flagged in (False, True):
            EventStore(database).page(machine, PageQuery(since=AT, flagged=flagged))
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    with database.read() as connection:
        plans = [
            str(connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).fetchall())
            for statement, values in asked
        ]
    database.close()
    assert len(plans) == 4
    assert [plan.count("ix_events_window") for plan in plans] == [1, 0, 1, 0]
    assert [plan.count("ix_events_flagged") for plan in plans] == [0, 1, 0, 1]
