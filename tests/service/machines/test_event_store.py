"""The event store, on SQLite and on PostgreSQL alike: committed once, read in an order arrival cannot change."""

import random
import tracemalloc
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, select

from service.database.engine import Database
from service.database.event_row import FROM_THE_FUTURE, IN_TIME, TOO_OLD, EventRow, flag_of
from service.database.tables import events, quarantine
from service.learning.enrolment_store import EnrolmentStore
from service.machines.event_store import EventStore
from service.machines.events import EventWrite, GapRow, PageQuery, QuarantineRow, WriteResult
from service.machines.models import Agent, Machine
from service.machines.store import MachineStore
from tests.service.conftest import enrolled
from wire.events import TransitionKind
from wire.identity import MachineId
from wire.timestamps import from_us, to_us

AT = datetime(2026, 11, 16, tzinfo=UTC)
ID = MachineId("padova", "filler-1")


@pytest.fixture
def machine(database: Database) -> Machine:
    return enrolled(EnrolmentStore(database), ID)


@pytest.fixture
def store(database: Database) -> EventStore:
    return EventStore(database)


def row(machine: Machine, epoch: UUID, seq: int, code: int = 139, flag: int = IN_TIME) -> EventRow:
    return EventRow(machine.row_id, epoch, seq, code, to_us(AT) + seq * 1_000_000, flag)


def recording(*rows: EventRow) -> EventWrite:
    return EventWrite(to_us(AT), events=list(rows))


def stored(database: Database) -> int:
    with database.read() as connection:
        return connection.execute(select(func.count()).select_from(events)).scalar_one()


def test_a_repeated_event_changes_nothing(database: Database, store: EventStore, machine: Machine) -> None:
    epoch = uuid4()
    rows = [row(machine, epoch, seq) for seq in range(1, 51)]
    assert store.commit(recording(*rows)) == WriteResult(50, 0, 0)
    assert store.commit(recording(*rows)) == WriteResult(0, 50, 0)
    assert store.commit(recording(*rows, row(machine, epoch, 51))) == WriteResult(1, 50, 0)
    assert stored(database) == 51


def test_the_same_number_with_another_body_is_a_conflict_and_the_first_stays(
    database: Database, store: EventStore, machine: Machine
) -> None:
    epoch = uuid4()
    store.commit(recording(row(machine, epoch, 1, code=5)))
    recorded = store.commit(recording(row(machine, epoch, 1, code=6), row(machine, epoch, 2)))
    assert recorded == WriteResult(1, 0, 1)
    with database.read() as connection:
        assert connection.execute(select(quarantine.c.reason)).scalars().all() == ["conflict"]
        assert connection.execute(select(events.c.code).order_by(events.c.seq)).scalars().all() == [5, 139]


def test_a_clear_under_the_number_of_a_raise_is_another_event(store: EventStore, machine: Machine) -> None:
    epoch, cleared = uuid4(), flag_of(TransitionKind.CLEARED)
    raised, ended = row(machine, epoch, 1), row(machine, epoch, 1, flag=cleared)
    store.commit(recording(raised))
    assert store.commit(recording(ended)) == WriteResult(0, 0, 1)
    live = EventWrite(to_us(AT), events=[ended], renumber_clashes=True)
    assert [store.commit(live).stored for _ in range(2)] == [1, 0]
    assert len(store.page(machine, PageQuery(kind=TransitionKind.CLEARED)).alarms) == 1
    too_old = row(machine, epoch, 2, flag=flag_of(TransitionKind.CLEARED, TOO_OLD))
    store.commit(recording(row(machine, epoch, 2, flag=cleared)))
    assert store.commit(recording(too_old)) == WriteResult(0, 1, 0), "sent again it may be too old by now"


def test_two_bodies_under_one_number_in_one_commit_are_a_conflict_too(store: EventStore, machine: Machine) -> None:
    epoch = uuid4()
    assert store.commit(recording(row(machine, epoch, 1, 5), row(machine, epoch, 1, 6))) == WriteResult(1, 0, 1)


def test_a_live_event_whose_number_is_taken_is_stored_once_under_another(
    database: Database, store: EventStore, machine: Machine
) -> None:
    epoch = uuid4()
    store.commit(recording(*(row(machine, epoch, seq, code=5) for seq in range(1, 4))))
    again = [row(machine, epoch, seq, code=6) for seq in range(2, 6)]
    for stored, duplicates in ((4, 0), (0, 4)):
        sent = recording(*again)
        sent.renumber_clashes = True
        recorded = store.commit(sent)
        assert recorded == WriteResult(stored, duplicates, 0)
        assert recorded.clashed == tuple(again[:2])
        assert len(recorded.new_events or ()) == stored
    with database.read() as connection:
        assert sorted(connection.execute(select(events.c.code)).scalars()) == [5, 5, 5, 6, 6, 6, 6]
        assert connection.execute(select(quarantine.c.reason)).scalars().all() == []


def test_another_epoch_may_use_the_same_numbers(store: EventStore, machine: Machine) -> None:
    assert store.commit(recording(row(machine, uuid4(), 1), row(machine, uuid4(), 1))) == WriteResult(2, 0, 0)


def test_a_new_store_object_knows_the_epochs_of_the_old(
    database: Database, store: EventStore, machine: Machine
) -> None:
    epoch = uuid4()
    store.commit(recording(row(machine, epoch, 1)))
    assert EventStore(database).commit(recording(row(machine, epoch, 1))) == WriteResult(0, 1, 0)


def test_any_order_of_arrival_gives_the_same_series(store: EventStore, machine: Machine) -> None:
    epochs = [uuid4(), uuid4()]
    rows = [
        EventRow(machine.row_id, epochs[seq % 2], seq, seq % 5, to_us(AT) + (seq // 4) * 1_000_000, IN_TIME)
        for seq in range(1, 200)
    ]
    random.Random(3).shuffle(rows)  # noqa: S311
    for start in range(0, len(rows), 17):
        store.commit(recording(*rows[start : start + 17]))
    series = store.series(machine, AT, AT + timedelta(hours=1))
    expected = sorted(rows, key=lambda one: (one.at_us, one.code))
    assert series.times.tolist() == [one.at_us for one in expected]
    assert series.codes.tolist() == [one.code for one in expected]


def test_a_series_is_half_open_and_of_one_machine(store: EventStore, database: Database, machine: Machine) -> None:
    other = enrolled(EnrolmentStore(database), MachineId("padova", "filler-2"))
    epoch = uuid4()
    store.commit(recording(*(row(machine, epoch, seq) for seq in (1, 2, 3)), row(other, uuid4(), 2)))
    series = store.series(machine, AT + timedelta(seconds=1), AT + timedelta(seconds=3))
    assert series.times.tolist() == [to_us(AT) + 1_000_000, to_us(AT) + 2_000_000]


def test_the_newest_of_a_series_stand_in_its_order_and_are_counted(store: EventStore, machine: Machine) -> None:
    epoch = uuid4()
    same = [
        EventRow(machine.row_id, epoch, 100 + code, code, to_us(AT) + 9_000_000, IN_TIME) for code in (7, 3, 5)
    ]
    store.commit(recording(*same, *(row(machine, epoch, seq) for seq in range(1, 12))))
    whole, end = store.series(machine, AT, AT + timedelta(hours=1)), AT + timedelta(hours=1)
    newest = store.newest(machine, AT, end, 5)
    assert newest.times.tolist() == whole.times[-5:].tolist()
    assert newest.codes.tolist() == whole.codes[-5:].tolist()
    assert store.count(machine, AT, end) == len(store.newest(machine, AT, end, 99)) == len(whole) == 14
    assert store.count(machine, AT, AT + timedelta(seconds=9)) == 8


def test_a_long_series_is_read_without_an_object_for_each_event(store: EventStore, machine: Machine) -> None:
    epoch, many = uuid4(), 40_000
    store.commit(recording(*(row(machine, epoch, seq) for seq in range(1, many + 1))))
    store.series(machine, AT, AT + timedelta(hours=1))  # what is loaded and remembered once is not counted
    tracemalloc.start()
    try:
        assert len(store.series(machine, AT, AT + timedelta(days=9))) == many
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak / many < 100, "bytes for each event; two numbers take 16"


def test_flagged_events_are_stored_but_kept_out_of_windows(store: EventStore, machine: Machine) -> None:
    epoch = uuid4()
    store.commit(recording(row(machine, epoch, 1), row(machine, epoch, 2, flag=FROM_THE_FUTURE)))
    assert len(store.series(machine, AT, AT + timedelta(hours=1))) == 1
    (flagged,) = store.page(machine, PageQuery(flagged=True)).alarms
    assert flagged.flag == "from_the_future"


def test_pages_go_backwards_in_time_without_skipping_or_repeating(store: EventStore, machine: Machine) -> None:
    epoch = uuid4()
    same_time = [EventRow(machine.row_id, epoch, seq, seq, to_us(AT), IN_TIME) for seq in range(1, 26)]
    store.commit(recording(*same_time, *(row(machine, epoch, seq, code=seq) for seq in range(26, 60))))
    codes, cursor = [], None
    while True:
        page = store.page(machine, PageQuery(limit=7, before=cursor))
        codes += [alarm.code for alarm in page.alarms]
        cursor = page.next
        if cursor is None:
            break
    assert codes == list(range(59, 0, -1))


def test_pages_can_be_narrowed_by_time_and_code(store: EventStore, machine: Machine) -> None:
    epoch = uuid4()
    store.commit(recording(*(row(machine, epoch, seq, code=seq % 2) for seq in range(1, 11))))
    query = PageQuery(since=AT + timedelta(seconds=3), until=AT + timedelta(seconds=8), code=1)
    assert [to_us(alarm.at) - to_us(AT) for alarm in store.page(machine, query).alarms] == [
        7_000_000, 5_000_000, 3_000_000,
    ]  # fmt: skip


def test_a_gap_that_has_grown_replaces_its_younger_self(store: EventStore, machine: Machine) -> None:
    epoch, start = uuid4(), to_us(AT)
    for last in (10, 20):
        gap = GapRow(machine.row_id, epoch, 1, last, start, start + last, "spool_full")
        store.commit(EventWrite(start, gaps=[gap]))
    (kept,) = store.gaps(machine, AT, AT + timedelta(hours=1))
    assert (kept.first_seq, kept.last_seq, kept.events, kept.last_at) == (1, 20, 20, from_us(start + 20))


def test_quarantine_is_written_with_the_batch_and_once_only(database: Database, store: EventStore) -> None:
    bad = QuarantineRow(None, "alarmcast/v1/x", "not_json", "detail", b"\x00\xffbytes")
    for _ in range(3):
        store.commit(EventWrite(to_us(AT), quarantined=[bad]))
    with database.read() as connection:
        (kept,) = connection.execute(select(quarantine)).all()
    assert (kept.body, kept.reason, len(kept.sha256)) == (b"\x00\xffbytes", "not_json", 64)


def test_an_event_is_a_sign_of_life_but_does_not_bring_an_agent_online(
    database: Database, store: EventStore, machine: Machine
) -> None:
    machines = MachineStore(database)
    gone = Agent(online=False, last_seen_at=AT, version="1", epoch=uuid4(), spooled=3, skew_ms=4)
    store.commit(EventWrite(to_us(AT), agent_states={machine.row_id: gone}))
    later = EventWrite(to_us(AT) + 5, events=[row(machine, uuid4(), 1)], seen_machines={machine.row_id})
    store.commit(later)
    agent = machines.agent(machine)
    assert agent
    assert (agent.online, agent.version, agent.spooled) == (False, "1", 3)
    assert agent.last_seen_at == from_us(to_us(AT) + 5)


def test_an_unregistered_machine_is_listed_until_it_is_registered(database: Database, store: EventStore) -> None:
    machines, stranger = MachineStore(database), MachineId("lyon", "filler-9")
    for later in (0, 7):
        store.commit(EventWrite(to_us(AT) + later, unregistered={stranger}))
    (knock,) = machines.unregistered()
    assert (knock.machine, knock.first_at, knock.last_at) == (stranger, AT, from_us(to_us(AT) + 7))
    enrolled(EnrolmentStore(database), stranger)
    assert machines.unregistered() == []


def test_a_commit_that_fails_leaves_nothing_behind(
    database: Database, store: EventStore, machine: Machine
) -> None:
    epoch = uuid4()
    broken = GapRow(machine.row_id, epoch, 1, 2, 3, 4, None)  # type: ignore[arg-type]
    with pytest.raises(Exception, match=r"(?i)null"):
        store.commit(EventWrite(to_us(AT), events=[row(machine, epoch, 1)], gaps=[broken]))
    assert stored(database) == 0
    assert store.commit(recording(row(machine, epoch, 1))) == WriteResult(1, 0, 0)


def test_the_history_of_a_machine_begins_with_its_first_trustworthy_event(
    store: EventStore, machine: Machine
) -> None:
    assert store.first_at(machine) is None
    epoch = uuid4()
    store.commit(recording(row(machine, epoch, 5), row(machine, epoch, 1, flag=FROM_THE_FUTURE)))
    assert store.first_at(machine) == AT + timedelta(seconds=5)
    assert store.last_at(machine) == AT + timedelta(seconds=5)
    assert store.heard_since(machine, epoch, AT)
    assert not store.heard_since(machine, epoch, AT + timedelta(seconds=1))
    assert not store.heard_since(machine, uuid4(), AT)
