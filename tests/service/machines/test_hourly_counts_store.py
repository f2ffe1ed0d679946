"""The last hours of many machines, on both databases."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import TextClause, text

from service.database.engine import Database
from service.database.event_row import FROM_THE_FUTURE, IN_TIME, EventRow
from service.learning.enrolment_store import EnrolmentStore
from service.machines.event_store import EventStore
from service.machines.events import EventWrite
from service.machines.evidence_store import COUNTS, LAST, HourlyCountStore
from service.machines.models import Machine
from tests.service.conftest import enrolled
from wire.identity import MachineId
from wire.timestamps import to_us

END = datetime(2026, 11, 16, 9, tzinfo=UTC)
HOUR, TICK = timedelta(hours=1), timedelta(microseconds=1)


@pytest.fixture
def machines(database: Database) -> list[Machine]:
    return [enrolled(EnrolmentStore(database), MachineId("padova", f"filler-{n}")) for n in range(3)]


def raised(database: Database, machine: Machine, *alarms: tuple[datetime, int], flag: int = IN_TIME) -> None:
    epoch = uuid4()
    rows = [
        EventRow(machine.row_id, epoch, seq, code, to_us(at), flag) for seq, (at, code) in enumerate(alarms, 1)
    ]
    EventStore(database).commit(EventWrite(to_us(END), events=rows))


def test_an_alarm_counts_in_the_hour_it_was_raised_in_and_hours_are_half_open(
    database: Database, machines: list[Machine]
) -> None:
    raised(
        database,
        machines[0],
        (END - 4 * HOUR - TICK, 7),
        (END - 4 * HOUR, 7),
        (END - HOUR - TICK, 7),
        (END - HOUR, 7),
        (END - TICK, 7),
        (END, 7),
    )
    strip = HourlyCountStore(database).counts(machines, END, 4)[machines[0].row_id]
    assert strip.counts == (1, 0, 1, 2)


def test_every_machine_asked_for_has_a_strip_and_its_own_last_alarm(
    database: Database, machines: list[Machine]
) -> None:
    first, second, third = machines
    raised(database, first, (END - 900 * HOUR, 7))
    raised(database, second, (END - 2 * HOUR, 5), (END - HOUR, 9), (END - HOUR, 8))
    strips = HourlyCountStore(database).counts([first, second, third], END, 2)
    assert strips[first.row_id] == ((0, 0), END - 900 * HOUR, 7)
    assert strips[second.row_id] == ((1, 2), END - HOUR, 9)
    assert strips[third.row_id] == ((0, 0), None, None)
    assert HourlyCountStore(database).counts([second], END, 2).keys() == {second.row_id}


def test_alarms_whose_time_is_not_believed_are_neither_counted_nor_the_last(
    database: Database, machines: list[Machine]
) -> None:
    raised(database, machines[0], (END - HOUR, 5))
    raised(database, machines[0], (END - HOUR / 2, 6), flag=FROM_THE_FUTURE)
    assert HourlyCountStore(database).counts(machines, END, 1)[machines[0].row_id] == ((1,), END - HOUR, 5)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("statement", [COUNTS, LAST], ids=["counts", "last"])
def test_strips_are_read_from_the_index_of_windows_alone(database: Database, statement: TextClause) -> None:
    values = {"machines": [1, 2, 3]} | ({"start": 0, "end": 9} if statement is COUNTS else {})
    question = text(f"EXPLAIN QUERY PLAN {statement.text}").bindparams(*statement._bindparams.values())  # noqa: SLF001
    with database.read() as connection:
        plan = " ".join(str(row) for row in connection.execute(question, values))
    assert "COVERING INDEX ix_events_window" in plan
    assert "SCAN events" not in plan
