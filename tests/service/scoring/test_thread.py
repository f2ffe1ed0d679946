"""The thread that scores: it starts by itself, survives trouble and says so, and ends when told."""

from pathlib import Path

import pytest

from service.database.engine import Database
from service.machines.models import Machine
from service.scoring.thread import ScoringThread
from tests.conftest import wait_until
from tests.support.scoring import AT, CLOSED, GRACE, HOUR, Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    database = Database(f"sqlite:///{tmp_path / 'alarmcast.sqlite3'}")
    database.upgrade()
    return Bench(database, tmp_path)


@pytest.fixture
def filler(bench: Bench) -> Machine:
    machine = bench.machine()
    bench.heard(machine, AT + 100 * HOUR)
    return machine


def test_forecasts_are_scored_without_being_asked_for(bench: Bench, filler: Machine) -> None:
    bench.said(filler, AT)
    bench.now = CLOSED + GRACE
    keeper = ScoringThread(bench.scoring, interval=0.01)
    keeper.start()
    wait_until(lambda: keeper.scored == 1, "the forecast is scored")
    keeper.stop()
    assert keeper.error == "the scoring thread has ended"
    assert set(bench.found(filler)) == {AT}


def test_trouble_is_told_and_goes_away_with_its_cause(bench: Bench, filler: Machine) -> None:
    bench.said(filler, AT)
    bench.now = CLOSED + GRACE
    with bench.database.write() as connection:
        connection.exec_driver_sql("ALTER TABLE outcomes RENAME TO elsewhere")
    keeper = ScoringThread(bench.scoring, interval=0.01)
    keeper.start()
    wait_until(lambda: keeper.last_error, "it complains")
    with bench.database.write() as connection:
        connection.exec_driver_sql("ALTER TABLE elsewhere RENAME TO outcomes")
    wait_until(lambda: keeper.scored == 1 and keeper.last_error is None, "it has recovered")
    keeper.stop()
