"""Events looked up by their numbers: only what was asked for is read, however far apart the numbers are."""

from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select

from service.database.dialect import stored_in
from service.database.engine import Database
from service.database.event_row import IN_TIME, EventRow
from service.database.tables import epochs
from service.learning.enrolment_store import EnrolmentStore
from service.machines.event_store import EventStore
from service.machines.event_write import EventWrite, WriteResult
from service.machines.models import Machine
from tests.service.conftest import enrolled
from tests.service.database.work import counted_work
from wire.identity import MachineId
from wire.timestamps import to_us

AT = datetime(2026, 11, 16, tzinfo=UTC)
MANY = 20_000


@pytest.fixture
def machine(database: Database) -> Machine:
    return enrolled(EnrolmentStore(database), MachineId("padova", "filler-1"))


def recording(machine: Machine, epoch: UUID, *seqs: int) -> EventWrite:
    rows = [EventRow(machine.row_id, epoch, seq, seq % 50, to_us(AT) + seq, IN_TIME) for seq in seqs]
    return EventWrite(to_us(AT), events=rows)


def test_two_duplicates_far_apart_do_not_make_sqlite_read_what_lies_between(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'alarmcast.sqlite3'}")
    database.upgrade()
    store, machine, epoch = EventStore(database), enrolled(EnrolmentStore(database), MachineId("a", "b")), uuid4()
    store.commit(recording(machine, epoch, *range(1, MANY + 1)))
    with counted_work() as near:
        assert store.commit(recording(machine, epoch, 1, 2)) == WriteResult(0, 2, 0)
    with counted_work() as far:
        assert store.commit(recording(machine, epoch, 1, MANY)) == WriteResult(0, 2, 0)
    database.close()
    assert far.thousands <= near.thousands + 2


def test_duplicates_and_new_events_in_any_order_are_told_apart(database: Database, machine: Machine) -> None:
    store, epoch, other = EventStore(database), uuid4(), uuid4()
    store.commit(recording(machine, epoch, *range(1, 3000, 2)))
    store.commit(recording(machine, other, 2, 5))
    again = recording(machine, epoch, *range(3000, 0, -1))
    again.events += recording(machine, other, 1, 2, 3).events
    again.received_us += 1
    recorded = store.commit(again)
    assert recorded == WriteResult(1502, 1501, 0)
    assert {(row.epoch, row.seq) for row in recorded.new_events or ()} == {
        *((epoch, seq) for seq in range(2, 3001, 2)),
        (other, 1),
        (other, 3),
    }


def test_ranges_yield_their_own_events_and_never_more_than_the_limit(database: Database, machine: Machine) -> None:
    epoch = uuid4()
    EventStore(database).commit(recording(machine, epoch, *range(1, 1001)))
    with database.read() as connection:
        number = connection.execute(select(epochs.c.id)).scalar_one()
        single = [(number, seq, seq) for seq in range(2, 1000, 2)]  # more than fit into one statement
        assert {seq for (seq,) in stored_in(connection, single, ("seq",), most=9999)} == set(range(2, 1000, 2))
        spans = [(number, 5, 7), (number, 990, 2**63 - 1)]
        assert {seq for (seq,) in stored_in(connection, spans, ("seq",), most=99)} == {5, 6, 7, *range(990, 1001)}
        assert len(list(stored_in(connection, single, ("seq",), most=400))) == 400
        assert list(stored_in(connection, [], ("seq",), most=1)) == []
