"""What one machine may keep: each list has a limit, the rest is counted, and other machines notice nothing."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, select

from service.database.engine import Database
from service.database.event_row import IN_TIME, EventRow
from service.database.tables import epochs, events, quarantine
from service.learning.enrolment_store import EnrolmentStore
from service.machines.epoch_store import crowded, forget_empty
from service.machines.event_store import EventStore
from service.machines.events import EventWrite, GapRow, QuarantineRow, WriteResult
from service.machines.limits_store import ExcessStore
from service.machines.models import Excess, ExcessKind, Machine, MachineLimits
from service.machines.store import MachineStore
from tests.service.conftest import enrolled
from tests.service.database.work import counted_work
from wire.identity import MachineId
from wire.timestamps import to_us

AT = datetime(2026, 11, 16, tzinfo=UTC)
HOUR = timedelta(hours=1)
ID, OTHER = MachineId("padova", "filler-1"), MachineId("padova", "filler-2")
EPOCH = UUID("0f9d9a3c-9d0e-4a39-8f0a-5b8f3c9c2a11")
LAST = 2**63 - 1


@pytest.fixture
def machine(database: Database) -> Machine:
    return enrolled(EnrolmentStore(database), ID)


@pytest.fixture
def other(database: Database) -> Machine:
    return enrolled(EnrolmentStore(database), OTHER)


def event(machine: Machine, epoch: UUID, seq: int) -> EventRow:
    return EventRow(machine.row_id, epoch, seq, 5, to_us(AT) + seq, IN_TIME)


def gap(machine: Machine, number: int, *, length: int = 1, last_seq: int | None = None) -> GapRow:
    first, start = number * 100, to_us(AT + number * HOUR)
    return GapRow(machine.row_id, EPOCH, first, last_seq or first + length, start, start + length, "spool_full")


def bad(machine: Machine | None, number: int, reason: str = "not_json", size: int = 100) -> QuarantineRow:
    body = b"%0*d" % (size, number)
    return QuarantineRow(machine.row_id if machine else None, "alarmcast/v1/a/b/events", reason, "detail", body)


def left_out(database: Database) -> dict[tuple[MachineId | None, ExcessKind], int]:
    return {(one.machine, one.kind): one.items for one in ExcessStore(database).since(AT)}


def kept(database: Database) -> list[tuple[int | None, str]]:
    with database.read() as connection:
        query = select(quarantine.c.machine_id, quarantine.c.reason).order_by(quarantine.c.id)
        return [(row.machine_id, row.reason) for row in connection.execute(query)]


def test_a_machine_keeps_so_many_gaps_and_the_newest_covers_the_time_of_the_rest(
    database: Database, machine: Machine, other: Machine
) -> None:
    store = EventStore(database, MachineLimits(gaps=3))
    store.commit(EventWrite(to_us(AT), gaps=[gap(machine, number) for number in range(1, 6)]))
    store.commit(EventWrite(to_us(AT), gaps=[gap(machine, 6), gap(machine, 2, length=7), gap(other, 7)]))
    found = store.gaps(machine, AT, AT + 99 * HOUR)
    assert [(one.first_seq, one.events) for one in found] == [(100, 2), (200, 8), (300, 2)]
    assert found[-1].first_at == AT + 3 * HOUR
    assert to_us(found[-1].last_at) == to_us(AT + 6 * HOUR) + 1, "nobody listened then"
    assert len(store.gaps(other, AT, AT + 99 * HOUR)) == 1
    assert left_out(database) == {(ID, ExcessKind.GAPS): 3}


def test_the_time_that_a_gap_covers_for_others_stays_when_it_grows(database: Database, machine: Machine) -> None:
    store = EventStore(database, MachineLimits(gaps=1))
    for told in (gap(machine, 2), gap(machine, 1), gap(machine, 5), gap(machine, 2, length=9)):
        store.commit(EventWrite(to_us(AT), gaps=[told]))
    (found,) = store.gaps(machine, AT, AT + 99 * HOUR)
    assert (found.first_at, found.events) == (AT + HOUR, 10)
    assert to_us(found.last_at) == to_us(AT + 5 * HOUR) + 1


def test_the_newest_gaps_say_how_many_events_are_missing_even_where_they_overlap(
    database: Database, machine: Machine
) -> None:
    store = EventStore(database)
    arrived = [event(machine, EPOCH, seq) for seq in (150, 250, 251, 900)]
    told = [gap(machine, 1, last_seq=300), gap(machine, 2, last_seq=1000), gap(machine, 3, last_seq=310)]
    store.commit(EventWrite(to_us(AT), events=arrived, gaps=told))
    found = store.newest_gaps(machine, AT, AT + 99 * HOUR, 10)
    assert [(one.first_seq, one.dropped) for one in found] == [(100, 198), (200, 798), (300, 11)]
    newest = store.newest_gaps(machine, AT, AT + 99 * HOUR, 2)
    assert [one.first_seq for one in newest] == [200, 300]


def test_overlapping_gaps_are_not_counted_one_by_one(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'alarmcast.sqlite3'}")
    database.upgrade()
    store, machine = EventStore(database), enrolled(EnrolmentStore(database), ID)
    many = [event(machine, EPOCH, seq) for seq in range(1, 5001)]
    store.commit(EventWrite(to_us(AT), events=many, gaps=[gap(machine, 1)._replace(first_seq=1, last_seq=LAST)]))
    with counted_work() as one:
        store.newest_gaps(machine, AT, AT + 9999 * HOUR, 1)
    overlapping = [gap(machine, number)._replace(first_seq=number, last_seq=LAST) for number in range(2, 300)]
    store.commit(EventWrite(to_us(AT), gaps=overlapping))
    with counted_work() as newest:
        (last,) = store.newest_gaps(machine, AT, AT + 9999 * HOUR, 1)
    with counted_work() as every:
        assert len(store.newest_gaps(machine, AT, AT + 9999 * HOUR, 1000)) == 299
    database.close()
    assert last.dropped == LAST - 299 + 1 - (5000 - 299 + 1)
    assert newest.thousands <= 2 * one.thousands
    assert every.thousands <= 3 * one.thousands


def test_a_machine_quarantines_so_many_items_and_still_a_sample_of_each_reason(
    database: Database, machine: Machine, other: Machine
) -> None:
    store = EventStore(database, MachineLimits(quarantined=5, samples=2))
    store.commit(EventWrite(to_us(AT), quarantined=[bad(machine, number) for number in range(20)]))
    more = [bad(machine, number, "bad_code") for number in range(10)]
    store.commit(EventWrite(to_us(AT), quarantined=[*more, bad(other, 99), bad(None, 98)]))
    expected = [(machine.row_id, "not_json")] * 5 + [(machine.row_id, "bad_code")] * 2
    assert sorted(kept(database), key=str) == sorted(
        [*expected, (other.row_id, "not_json"), (None, "not_json")], key=str
    )
    assert left_out(database) == {(ID, ExcessKind.QUARANTINE): 15 + 8}


@pytest.mark.parametrize("known", [True, False], ids=["of a machine", "of no machine"])
def test_a_machine_quarantines_so_many_bytes(database: Database, machine: Machine, *, known: bool) -> None:
    store = EventStore(database, MachineLimits(quarantined_bytes=3500, samples=1))
    sender = machine if known else None
    for number in range(10):
        store.commit(EventWrite(to_us(AT) + number, quarantined=[bad(sender, number, size=1000)]))
    assert len(kept(database)) == 3
    (found,) = ExcessStore(database).since(AT)
    assert found[:3] == Excess(ID if known else None, ExcessKind.QUARANTINE, 7, AT, AT)[:3]
    assert (to_us(found.since), to_us(found.last_at)) == (to_us(AT) + 3, to_us(AT) + 9)


def test_room_in_the_quarantine_is_used_again(database: Database, machine: Machine) -> None:
    store = EventStore(database, MachineLimits(quarantined=2, samples=0))
    store.commit(EventWrite(to_us(AT), quarantined=[bad(machine, number) for number in range(3)]))
    with database.read() as connection:
        first = connection.execute(select(func.min(quarantine.c.id))).scalar_one()
    store.commit(
        EventWrite(to_us(AT), quarantined=[bad(machine, 7), bad(machine, 8)], released_quarantine={first})
    )
    assert len(kept(database)) == 2
    assert left_out(database) == {(ID, ExcessKind.QUARANTINE): 2}


def test_a_machine_has_so_many_epochs_and_what_is_refused_is_not_stored(
    database: Database, machine: Machine, other: Machine
) -> None:
    store, known = EventStore(database, MachineLimits(epochs=2)), [uuid4(), uuid4()]
    store.commit(EventWrite(to_us(AT), events=[event(machine, one, 1) for one in known]))
    new, ours = uuid4(), uuid4()
    mixed = [event(machine, known[0], 2), event(machine, new, 1), event(other, ours, 1)]
    recorded = store.commit(EventWrite(to_us(AT), events=mixed, gaps=[gap(machine, 1)]))
    assert recorded == WriteResult(2, 0, 0, refused=frozenset({(machine.row_id, new), (machine.row_id, EPOCH)}))
    assert recorded.new_events == (mixed[0], mixed[2])
    assert store.gaps(machine, AT, AT + 99 * HOUR) == []
    assert left_out(database) == {(ID, ExcessKind.EPOCHS): 2}


def test_an_epoch_of_which_nothing_is_stored_any_more_makes_room(database: Database, machine: Machine) -> None:
    store, known = EventStore(database, MachineLimits(epochs=2)), sorted([uuid4(), uuid4()])
    store.commit(EventWrite(to_us(AT), events=[event(machine, one, 1) for one in known]))
    with database.write() as connection:
        oldest = connection.execute(select(func.min(epochs.c.id))).scalar_one()
        connection.execute(events.delete().where(events.c.epoch_id == oldest))
    with database.write() as connection:
        assert crowded(connection, 1) == [machine.row_id]
        assert crowded(connection, 2) == []
        assert forget_empty(connection, machine.row_id) == 1
    again = [event(machine, one, seq) for one in (uuid4(), known[1]) for seq in (1, 2)]
    assert store.commit(EventWrite(to_us(AT), events=again)) == WriteResult(3, 1, 0)


def test_of_machines_that_publish_without_being_enrolled_the_newest_are_listed_and_the_rest_is_counted(
    database: Database,
) -> None:
    store = EventStore(database, MachineLimits(unenrolled=3))
    names = [MachineId("padova", f"m{number}") for number in range(9)]
    for hour, name in enumerate(names[:5]):
        store.commit(EventWrite(to_us(AT + hour * HOUR), unregistered={name}))
    listed = [one.machine for one in MachineStore(database).unregistered()]
    assert listed == names[4:1:-1]
    assert left_out(database) == {(None, ExcessKind.UNENROLLED): 2}
    store.commit(EventWrite(to_us(AT + 5 * HOUR), unregistered={names[2]}))
    assert left_out(database) == {(None, ExcessKind.UNENROLLED): 2}, "one that is listed leaves nobody out"
    store.commit(EventWrite(to_us(AT + 6 * HOUR), unregistered={names[3], *names[5:]}))
    assert len(MachineStore(database).unregistered()) == 3
    assert left_out(database) == {(None, ExcessKind.UNENROLLED): 2 + 5 - 3 + 2}
