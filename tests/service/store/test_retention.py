"""Retention: by age and by size, in pieces, on both databases; what is young stays whatever happens."""

from datetime import timedelta
from uuid import uuid4

from sqlalchemy import func, select

from service.core.machine import Machine
from service.core.recording import EventRow, GapRow, Quarantined, Recording
from service.flows.retention import Retention
from service.store.engine import Database
from service.store.enrolments import EnrolmentStore
from service.store.events import EventStore
from service.store.retention import RetentionStore
from service.store.tables import events, gaps, quarantine
from tests.service.conftest import FILLER, NOW, enrolled
from wire.micros import micros

DAY = timedelta(days=1)
EPOCH = uuid4()


def registered(database: Database) -> Machine:
    return enrolled(EnrolmentStore(database), FILLER)


def fill(database: Database, *, days: int, a_day: int) -> None:
    machine = registered(database)
    rows = [
        EventRow(
            machine.row, EPOCH, number + 1, 1, micros(NOW - DAY * number / a_day - timedelta(microseconds=1)), 0
        )
        for number in range(days * a_day)
    ]
    EventStore(database).commit(Recording(micros(NOW), events=rows))


def count(database: Database, table: object = events) -> int:
    with database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(table)).scalar_one())  # type: ignore[arg-type]


def test_events_beyond_their_age_are_forgotten_and_no_others(database: Database) -> None:
    fill(database, days=20, a_day=300)
    kept = Retention(RetentionStore(database), keep=10 * DAY, keep_quarantined=90 * DAY)
    assert kept.apply(NOW) == count(database) == 3000
    assert kept.apply(NOW) == 0
    oldest = RetentionStore(database).oldest()
    assert oldest
    assert oldest >= NOW - 10 * DAY


def test_a_size_that_is_exceeded_costs_the_oldest_days_and_never_the_present(database: Database) -> None:
    fill(database, days=20, a_day=2000)
    store = RetentionStore(database)
    most = store.size() // 2
    Retention(store, keep=400 * DAY, keep_quarantined=90 * DAY, most_bytes=most).apply(NOW)
    assert store.size() <= most
    oldest = store.oldest()
    assert oldest
    assert NOW - 12 * DAY < oldest < NOW - 5 * DAY
    Retention(store, keep=400 * DAY, keep_quarantined=90 * DAY, most_bytes=1).apply(NOW)
    assert 2000 <= count(database) <= 6000, "forecasts need the last two days"


def test_flagged_events_gaps_and_quarantine_grow_old_too(database: Database) -> None:
    machine, long_ago = registered(database), micros(NOW - 500 * DAY)
    recording = Recording(
        long_ago,
        events=[EventRow(machine.row, EPOCH, 1, 1, micros(NOW + 900 * DAY), 1)],
        gaps=[GapRow(machine.row, EPOCH, 2, 3, long_ago, long_ago, "spool_full")],
        quarantined=[Quarantined(None, "t", "not_json", "x", b"{")],
    )
    EventStore(database).commit(recording)
    Retention(RetentionStore(database), keep=400 * DAY, keep_quarantined=90 * DAY).apply(NOW)
    assert [count(database, table) for table in (events, gaps, quarantine)] == [0, 0, 0]


def test_forgetting_pauses_between_pieces_and_can_be_stopped(database: Database) -> None:
    fill(database, days=15, a_day=500)
    kept = Retention(RetentionStore(database), keep=DAY, keep_quarantined=90 * DAY)
    assert kept.apply(NOW, pause=lambda: False) == 2000
    assert kept.apply(NOW) == 5000
