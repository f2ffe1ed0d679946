"""Events by month on PostgreSQL: each in its own, which is made in time and dropped when it is over."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from service.database import partitions
from service.database.engine import Database
from service.database.event_row import FROM_THE_FUTURE, IN_TIME, TOO_OLD, EventRow
from service.database.partitions import Month
from service.errors import Unavailable
from service.learning.enrolment_store import EnrolmentStore
from service.machines.event_store import EventStore
from service.machines.event_write import EventWrite, WriteResult
from service.machines.models import Machine
from service.machines.retention import Retention
from service.machines.retention_store import RetentionStore
from tests.service.conftest import FILLER, NOW, enrolled
from wire.timestamps import to_us

pytestmark = pytest.mark.parametrize("database", ["postgresql"], indirect=True)
DAY, TICK = timedelta(days=1), timedelta(microseconds=1)
DECEMBER = datetime(2026, 12, 1, tzinfo=UTC)


@pytest.fixture
def machine(database: Database) -> Machine:
    return enrolled(EnrolmentStore(database), FILLER)


def recording(machine: Machine, epoch: UUID, moments: Iterable[datetime], *, flag: int = IN_TIME) -> EventWrite:
    rows = [EventRow(machine.row_id, epoch, seq, 1, to_us(at), flag) for seq, at in enumerate(moments, start=1)]
    return EventWrite(to_us(NOW), events=rows)


def held(database: Database) -> dict[str, int]:
    query = text("SELECT tableoid::regclass::text, count(*) FROM events GROUP BY 1")
    with database.read() as connection:
        return dict(map(tuple, connection.execute(query)))


def made(database: Database) -> list[Month]:
    with database.read() as connection:
        return partitions.existing_months(connection)


def test_an_event_lies_in_its_month_and_months_are_half_open(database: Database, machine: Machine) -> None:
    EventStore(database).commit(recording(machine, uuid4(), [DECEMBER - TICK, DECEMBER, DECEMBER + 3 * DAY]))
    assert held(database) == {"events_2026_11": 1, "events_2026_12": 2}


def test_a_month_has_its_table_before_its_first_event_comes(database: Database, machine: Machine) -> None:
    store, epoch = EventStore(database), uuid4()
    store.commit(recording(machine, epoch, [NOW]))
    assert made(database) == [Month(2026, 11), Month(2026, 12)]
    store.commit(recording(machine, epoch, [NOW, DECEMBER]))
    assert made(database) == [Month(2026, 11), Month(2026, 12), Month(2027, 1)]


def test_a_time_that_nobody_believes_gets_no_month(database: Database, machine: Machine) -> None:
    store = EventStore(database)
    store.commit(recording(machine, uuid4(), [datetime(9999, 12, 31, tzinfo=UTC)], flag=FROM_THE_FUTURE))
    store.commit(recording(machine, uuid4(), [datetime(1, 1, 1, tzinfo=UTC)], flag=TOO_OLD))
    assert (made(database), held(database)) == ([], {"events_flagged": 2})


def test_an_event_that_was_flagged_and_is_in_time_when_sent_again_is_known(
    database: Database, machine: Machine
) -> None:
    store, epoch = EventStore(database), uuid4()
    store.commit(recording(machine, epoch, [DECEMBER], flag=FROM_THE_FUTURE))
    assert store.commit(recording(machine, epoch, [DECEMBER])) == WriteResult(0, 1, 0)
    assert held(database) == {"events_flagged": 1}


def test_a_number_that_comes_again_with_another_month_is_a_conflict(database: Database, machine: Machine) -> None:
    store, epoch = EventStore(database), uuid4()
    store.commit(recording(machine, epoch, [NOW]))
    assert store.commit(recording(machine, epoch, [NOW - 40 * DAY])) == WriteResult(0, 0, 1)
    assert held(database) == {"events_2026_11": 1}


def test_numbers_in_any_order_are_each_stored_once(database: Database, machine: Machine) -> None:
    store, epoch = EventStore(database), uuid4()
    whole = recording(machine, epoch, [NOW - (20 - place) * DAY for place in range(20)]).events
    assert store.commit(EventWrite(to_us(NOW), events=whole[15:])) == WriteResult(5, 0, 0)
    assert store.commit(EventWrite(to_us(NOW), events=whole[0:20:3])).stored == 5, "16 and 19 were there"
    recorded = store.commit(EventWrite(to_us(NOW), events=[*whole, *whole]))
    assert recorded == WriteResult(10, 30, 0)
    assert recorded.new_events is not None
    assert len(set(recorded.new_events)) == 10


def test_what_was_stored_before_epochs_had_heights_is_known_too(database: Database, machine: Machine) -> None:
    store, epoch = EventStore(database), uuid4()
    store.commit(recording(machine, epoch, [NOW, NOW]))
    with database.write() as connection:
        connection.execute(text("UPDATE epochs SET last_seq = NULL"))
    assert EventStore(database).commit(recording(machine, epoch, [NOW, NOW, NOW])) == WriteResult(1, 2, 0)


def test_months_that_are_over_are_dropped_whole(database: Database, machine: Machine) -> None:
    moments = [NOW - place * DAY for place in range(120)]
    EventStore(database).commit(recording(machine, uuid4(), moments))
    assert Retention(RetentionStore(database), keep=30 * DAY, keep_quarantined=DAY).apply(NOW) == 89
    assert [month.table for month in made(database)] == ["events_2026_10", "events_2026_11", "events_2026_12"]
    assert held(database) == {"events_2026_10": 15, "events_2026_11": 16}


def test_while_somebody_reads_on_and_on_the_rows_of_a_month_go_one_by_one(
    database: Database, machine: Machine
) -> None:
    EventStore(database).commit(recording(machine, uuid4(), [NOW - 90 * DAY, NOW]))
    with database.read() as reader:
        reader.execute(text("SELECT count(*) FROM events"))
        Retention(RetentionStore(database), keep=30 * DAY, keep_quarantined=DAY).apply(NOW)
        assert held(database) == {"events_2026_11": 1}
        assert Month(2026, 8) in made(database)
    RetentionStore(database).delete_events(NOW - 30 * DAY, most=10)
    assert Month(2026, 8) not in made(database), "empty, and nobody reads it any more"


def test_a_month_that_was_dropped_behind_our_back_is_made_again(database: Database, machine: Machine) -> None:
    store, epoch = EventStore(database), uuid4()
    store.commit(recording(machine, epoch, [NOW]))
    with database.write() as connection:
        partitions.drop_month(connection, Month(2026, 11))
    again = recording(machine, epoch, [NOW, NOW])
    with pytest.raises(Unavailable, match="made again"):
        store.commit(again)
    assert store.commit(again) == WriteResult(2, 0, 0)


def test_a_large_recording_is_stored_like_a_small_one(database: Database, machine: Machine) -> None:
    store, epoch = EventStore(database), uuid4()
    large = recording(machine, epoch, [NOW - place * DAY / 100 for place in range(6000)])
    assert store.commit(large) == WriteResult(6000, 0, 0)
    assert store.commit(large) == WriteResult(0, 6000, 0)
    assert len(store.series(machine, NOW - 365 * DAY, NOW + DAY)) == 6000
