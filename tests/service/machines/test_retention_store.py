"""Retention: by age and by size, in pieces, on both databases; what is young stays whatever happens."""

from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
from sqlalchemy import Table, func, select

from service.database.engine import Database
from service.database.event_row import EventRow
from service.database.tables import epochs, events, forecasts, gaps, outcomes, quarantine
from service.database.weight_files import WeightsFolder
from service.forecasts.store import ForecastStore
from service.forecasts.version import StoredForecast
from service.forecasts.version_store import VersionStore
from service.learning.enrolment_store import EnrolmentStore
from service.machines.event_store import EventStore
from service.machines.events import EventWrite, GapRow, QuarantineRow
from service.machines.models import Machine
from service.machines.retention import Retention
from service.machines.retention_store import RetentionStore
from tests.service.conftest import FILLER, NOW, enrolled, small_model
from wire.timestamps import from_us, to_us

DAY = timedelta(days=1)
EPOCH = uuid4()


def registered(database: Database) -> Machine:
    return enrolled(EnrolmentStore(database), FILLER)


def fill(database: Database, *, days: int, a_day: int) -> None:
    machine = registered(database)
    rows = [
        EventRow(
            machine.row_id, EPOCH, number + 1, 1, to_us(NOW - DAY * number / a_day - timedelta(microseconds=1)), 0
        )
        for number in range(days * a_day)
    ]
    EventStore(database).commit(EventWrite(to_us(NOW), events=rows))


def fill_forecasts(database: Database, folder: Path, *, days: int, a_day: int = 96, codes: int = 15) -> None:
    """Store forecasts as they are made on the grid, each with its outcome: most of what a store holds."""
    row = registered(database).row_id
    version = VersionStore(database, WeightsFolder(folder)).add_and_promote(small_model(), report={}, at=NOW)
    said = np.full(codes, 0.25, dtype=np.float32)
    moments = [NOW - DAY * number / a_day for number in range(days * a_day)]
    ForecastStore(database).add(
        [StoredForecast(row, at, version.id, "ok", 9, 1.0, said) for at in moments],
    )
    scored = [
        {
            "machine_id": row,
            "as_of_us": to_us(at),
            "horizon_end_us": to_us(at),
            "events_occurred": 1,
            "unobserved": False,
            "label_flags": bytes(codes),
            "base_rates": said.tobytes(),
            "scored_us": to_us(NOW),
            "revision_count": 0,
            "stale": 0,
        }
        for at in moments
    ]
    with database.write() as connection:
        connection.execute(outcomes.insert(), scored)


def count(database: Database, table: Table = events) -> int:
    with database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def days_of(database: Database, table: Table, column: str) -> float:
    """Return how many days a table reaches back."""
    with database.read() as connection:
        first = connection.execute(select(func.min(table.c[column]))).scalar_one()
    return (NOW - from_us(first)) / DAY


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


def test_a_size_that_is_exceeded_costs_whole_days_forecasts_and_outcomes_among_them(
    database: Database, tmp_path: Path
) -> None:
    fill(database, days=60, a_day=46)
    fill_forecasts(database, tmp_path / "weights", days=60)
    store = RetentionStore(database)
    most = int(store.size() * 0.6)
    Retention(store, keep=400 * DAY, keep_quarantined=90 * DAY, most_bytes=most).apply(NOW)
    assert store.size() <= most
    reach = [days_of(database, *of) for of in ((events, "at_us"), (forecasts, "as_of_us"), (outcomes, "as_of_us"))]
    assert max(reach) - min(reach) < 1, "a day goes whole"
    assert 20 < min(reach) < 45, "as many days as need be, and no more"


def test_a_size_that_no_day_helps_to_keep_costs_the_forecasts_up_to_the_present_and_is_told(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill_forecasts(database, tmp_path / "weights", days=10)
    Retention(RetentionStore(database), keep=400 * DAY, keep_quarantined=90 * DAY, most_bytes=1).apply(NOW)
    assert 96 <= count(database, forecasts) == count(database, outcomes) <= 3 * 96
    assert "allow more" in caplog.text


def test_days_that_make_no_room_are_kept(database: Database) -> None:
    fill(database, days=60, a_day=1)
    store = RetentionStore(database)

    class Crowded(RetentionStore):
        """A database full of something else."""

        def size(self) -> int:
            return 2_000_000_000

    Retention(Crowded(database), keep=400 * DAY, keep_quarantined=90 * DAY, most_bytes=1_000_000_000).apply(NOW)
    oldest = store.oldest()
    assert oldest
    assert NOW - oldest > 50 * DAY


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@pytest.mark.parametrize("codes", [2, 40])
def test_the_size_is_about_what_the_tables_of_the_days_take(
    database: Database, tmp_path: Path, codes: int
) -> None:
    fill(database, days=20, a_day=1000)
    fill_forecasts(database, tmp_path / "weights", days=200, codes=codes)
    tables = "SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('events')"
    beside = "SELECT pg_total_relation_size('forecasts') + pg_total_relation_size('outcomes')"
    with database.read() as connection:
        taken = sum(int(connection.exec_driver_sql(query).scalar_one()) for query in (tables, beside))
    assert 0.75 * taken < RetentionStore(database).size() < 1.25 * taken


def test_forecasts_beyond_their_age_go_with_their_outcomes(database: Database, tmp_path: Path) -> None:
    fill_forecasts(database, tmp_path / "weights", days=20)
    Retention(RetentionStore(database), keep=10 * DAY, keep_quarantined=90 * DAY).apply(NOW)
    assert count(database, forecasts) == count(database, outcomes) == 10 * 96 + 1


def test_flagged_events_gaps_and_quarantine_grow_old_too(database: Database) -> None:
    machine, long_ago = registered(database), to_us(NOW - 500 * DAY)
    recording = EventWrite(
        long_ago,
        events=[EventRow(machine.row_id, EPOCH, 1, 1, to_us(NOW + 900 * DAY), 1)],
        gaps=[GapRow(machine.row_id, EPOCH, 2, 3, long_ago, long_ago, "spool_full")],
        quarantined=[QuarantineRow(None, "t", "not_json", "x", b"{")],
    )
    EventStore(database).commit(recording)
    Retention(RetentionStore(database), keep=400 * DAY, keep_quarantined=90 * DAY).apply(NOW)
    assert [count(database, table) for table in (events, gaps, quarantine)] == [0, 0, 0]


def test_forgetting_pauses_between_pieces_and_can_be_stopped(database: Database) -> None:
    fill(database, days=15, a_day=500)
    kept = Retention(RetentionStore(database), keep=DAY, keep_quarantined=90 * DAY)
    assert kept.apply(NOW, pause=lambda: False) == 2000
    assert kept.apply(NOW) == 5000


def test_epochs_without_events_go_with_retention_where_a_machine_has_many(database: Database) -> None:
    row, store = registered(database).row_id, EventStore(database)
    old, young = [uuid4() for _ in range(120)], uuid4()
    for days, spools in ((20, old), (1, [young])):
        at = to_us(NOW - days * DAY)
        rows = [EventRow(row, epoch, 1, 1, at, 0) for epoch in spools]
        store.commit(EventWrite(at, events=rows))
    Retention(RetentionStore(database), keep=10 * DAY, keep_quarantined=DAY).apply(NOW)
    assert count(database, epochs) == count(database, events) == 1
    again = [EventRow(row, epoch, 1, 1, to_us(NOW - DAY), 0) for epoch in (young, old[0])]
    assert store.commit(EventWrite(to_us(NOW), events=again)).stored == 1
