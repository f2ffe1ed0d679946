"""The store of outcomes, on SQLite and on PostgreSQL alike."""

from pathlib import Path
from threading import Event, Thread
from uuid import uuid4

import numpy as np
import pytest
from sqlalchemy import delete, func, select

from service.database.engine import Database
from service.database.event_row import EventRow
from service.database.tables import forecasts, outcomes
from service.machines.events import EventWrite
from service.machines.models import Machine
from service.machines.score_invalidation_store import invalidate_scores
from tests.support.scoring import AT, CLOSED, GRACE, HOUR, MINUTE, Bench
from wire.timestamps import to_us


@pytest.fixture
def bench(database: Database, tmp_path: Path) -> Bench:
    return Bench(database, tmp_path)


@pytest.fixture
def filler(bench: Bench) -> Machine:
    machine = bench.machine()
    bench.heard(machine, AT + 100 * HOUR)
    return machine


def test_a_versions_measure_is_kept_once(bench: Bench) -> None:
    assert bench.outcomes.versions_without_spec() == [bench.version.id]
    bench.score(AT)
    assert bench.outcomes.versions_without_spec() == []
    measure = bench.outcomes.specs()[bench.version.id]
    assert (measure.codes.tolist(), measure.thresholds.tolist()) == ([139, 26], [0.5, 0.5])
    assert (measure.lookback_us, measure.horizon_us) == (1720 * 60_000_000, 480 * 60_000_000)


def test_a_scored_forecast_is_read_back_as_it_was_written(bench: Bench, filler: Machine) -> None:
    bench.raised(filler, (AT - 30 * HOUR, 139), (AT + HOUR, 26), (AT + HOUR, 5))
    bench.said(filler, AT, 0.75, 0.25, status="stale")
    bench.score(CLOSED + GRACE)
    (one,) = bench.outcomes.page(filler, AT, AT + HOUR, limit=9)
    assert (one.outcome.as_of_us, one.outcome.horizon_end_us) == (to_us(AT), to_us(CLOSED))
    assert (one.outcome.event_count, one.status, one.scored_us) == (2, "stale", to_us(CLOSED + GRACE))
    assert one.probabilities.tolist() == [0.75, 0.25]
    (sheet,) = bench.outcomes.score_tables(filler, AT, AT + HOUR)
    assert (sheet.occurred.tolist(), sheet.predicted.tolist()) == ([[False, True]], [[True, False]])
    assert np.array_equal(sheet.base_rate[0], one.outcome.base_rate, equal_nan=True)
    assert bench.outcomes.score_tables(filler, AT, AT + HOUR, status="ok") == []
    assert bench.outcomes.score_tables(filler, AT - HOUR, AT) == []


def test_scoring_leaves_the_forecast_as_it_was(bench: Bench, filler: Machine) -> None:
    bench.said(filler, AT, 0.75, 0.25)
    (before,) = bench.forecasts.of(filler, AT, CLOSED)
    bench.score(CLOSED + GRACE)
    bench.raised(filler, (AT + HOUR, 26))
    bench.score()
    (after,) = bench.forecasts.of(filler, AT, CLOSED)
    assert after.probabilities.tolist() == before.probabilities.tolist()
    assert (after.version, after.status, after.coverage) == (before.version, before.status, before.coverage)


def test_the_mark_of_a_late_event_stands_and_falls_with_its_commit(bench: Bench, filler: Machine) -> None:
    bench.said(filler, AT)
    bench.score(CLOSED + GRACE)
    good = EventRow(filler.row_id, uuid4(), 1, 26, to_us(AT), 0)
    bad = EventRow(filler.row_id, uuid4(), 1, None, to_us(AT), 0)  # type: ignore[arg-type]
    with pytest.raises(Exception, match=r"(?i)null"):
        bench.events.commit(EventWrite(to_us(bench.now), events=[good, bad]))
    assert bench.score() == 0
    bench.events.commit(EventWrite(to_us(bench.now), events=[good]))
    assert sum(bench.new_scoring().score_all_due()) == 1, "whoever scores after a crash finds the mark"


def test_scoring_waits_for_a_commit_that_has_already_looked_at_the_mark(
    bench: Bench, filler: Machine, database: Database
) -> None:
    """Otherwise the commit would find nothing to mark, and scoring would not see its event."""
    done = Event()
    late = EventWrite(to_us(AT), events=[EventRow(filler.row_id, uuid4(), 1, 26, to_us(AT), 0)])

    def open_scoring() -> None:
        bench.outcomes.begin(filler, to_us(CLOSED))
        done.set()

    scorer = Thread(target=open_scoring)
    with database.write() as connection:
        invalidate_scores(connection, late, stored=1)
        scorer.start()
        assert not done.wait(0.3), "the commit is not over yet"
    assert done.wait(10)
    scorer.join()


def test_a_forecast_that_is_erased_takes_its_outcome_along(
    bench: Bench, filler: Machine, database: Database
) -> None:
    bench.said(filler, AT)
    bench.score(CLOSED + GRACE)
    with database.write() as connection:
        connection.execute(delete(forecasts).where(forecasts.c.machine_id == filler.row_id))
    with database.read() as connection:
        assert connection.execute(select(func.count()).select_from(outcomes)).scalar_one() == 0


def test_pages_go_backwards_in_time(bench: Bench, filler: Machine) -> None:
    for quarter in range(5):
        bench.said(filler, AT + quarter * 15 * MINUTE)
    bench.score(AT + 50 * HOUR)
    first = bench.outcomes.page(filler, AT, AT + HOUR, limit=2)
    assert [one.outcome.as_of_us for one in first] == [to_us(AT + 45 * MINUTE), to_us(AT + 30 * MINUTE)]
