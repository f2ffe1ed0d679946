"""What the database says about itself and what it counts for a health page, on both kinds."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from service.database.engine import Database
from service.database.event_row import EventRow
from service.database.info import DatabaseInfoReader
from service.learning.enrolment_store import EnrolmentStore
from service.learning.job_store import JobStore
from service.machines.event_store import EventStore
from service.machines.events import EventWrite, QuarantineRow
from service.machines.quarantine_store import QuarantineStore
from tests.service.conftest import enrolled
from wire.enums import JobState
from wire.identity import MachineId
from wire.timestamps import to_us

AT = datetime(2026, 11, 16, tzinfo=UTC)


def test_the_database_says_what_it_is_and_how_large(database: Database) -> None:
    facts = DatabaseInfoReader(database).read()
    assert facts.kind == ("sqlite" if database.is_sqlite else "postgresql")
    assert facts.version.replace(".", "").isdigit()
    assert facts.size > 10_000
    assert facts.revision
    assert facts.revision.startswith("00")


def test_reasons_are_counted_most_first_with_the_time_of_their_last(database: Database) -> None:
    store = QuarantineStore(database)
    assert store.reasons() == []
    for hours, reason in enumerate(("late", "broken", "broken")):
        item = QuarantineRow(None, "t", reason, "d", bytes([hours]))
        EventStore(database).commit(EventWrite(to_us(AT + timedelta(hours=hours)), quarantined=[item]))
    assert store.reasons() == [("broken", 2, AT + timedelta(hours=2)), ("late", 1, AT)]


def test_jobs_are_counted_by_state(database: Database) -> None:
    for name in ("a", "b"):
        enrolled(EnrolmentStore(database), MachineId("padova", name))
    assert JobStore(database).counts() == {JobState.COLLECTING: 2}


def test_of_events_that_are_partly_known_the_new_ones_are_named(database: Database) -> None:
    machine, epoch = enrolled(EnrolmentStore(database), MachineId("padova", "a")), uuid4()
    store = EventStore(database)
    rows = [EventRow(machine.row_id, epoch, seq, 5, to_us(AT), 0) for seq in range(1, 5)]
    assert store.commit(EventWrite(to_us(AT), events=rows[:2])).new_events is None
    later = EventWrite(to_us(AT) + 1, events=[*rows, rows[3]])
    assert store.commit(later).new_events == tuple(rows[2:])
    assert store.commit(EventWrite(to_us(AT) + 2, events=rows)).new_events == ()
