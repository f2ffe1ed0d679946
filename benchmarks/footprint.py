"""What an event, a forecast and its outcome take on disk, written in the order in which they come.

A month that is loaded machine by machine fills every page of an index; events of a hundred machines that take
turns leave a third of each empty, and that is how they come. ``python -m benchmarks.footprint`` does it alone.
"""

import argparse
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console

from benchmarks.synthetic_plant import ALARMS_A_DAY, CODES, Plant, epoch_of, settle
from forecasting.window import grid
from service.app.configuration import load_settings
from service.app.stores import Stores, open_stores
from service.database.engine import Database
from service.database.event_row import IN_TIME, EventRow
from service.forecasts.version import StoredForecast
from service.machines.events import EventWrite
from service.scoring.service import ScoringService
from wire.clock import PlantClock
from wire.timestamps import to_us

_MACHINES, _DAYS = 100, 6
_GRID = timedelta(minutes=15)
_A_COMMIT = 50  # events; a large fleet's commits hold few of each machine
_TABLES = ("events", "forecasts", "outcomes")


@dataclass(frozen=True)
class Footprint:
    """Bytes of a row with its index entries and with the room that pages leave free."""

    event: float
    forecast: float
    outcome: float

    @property
    def machine_day(self) -> float:
        """What a machine adds a day: its alarms, and a forecast with its outcome every quarter of an hour."""
        return ALARMS_A_DAY * self.event + (self.forecast + self.outcome) * (timedelta(days=1) / _GRID)


def footprint(database_url: str | None = None) -> Footprint:
    """Write six days of a hundred machines through the service's own stores, and weigh them."""
    end = datetime.now(UTC)
    start = end - timedelta(days=_DAYS)
    with TemporaryDirectory() as folder:
        settings = load_settings(data_dir=Path(folder), database_url=database_url)
        with open_stores(settings) as stores:
            settle(stores, Plant(_MACHINES, days=0), start)
            _raise_alarms(stores, start, end)
            _forecast(stores, start, end)
            clock = PlantClock(end, end, 1.0, wall=end.timestamp)
            scoring = ScoringService(
                stores.machines, stores.events, stores.versions, stores.outcomes, clock, timedelta(minutes=5)
            )
            for _scored in scoring.score_all_due():
                pass
            sizes = [_bytes_a_row(stores.database, table) for table in _TABLES]
    return Footprint(*sizes)


def _raise_alarms(stores: Stores, start: datetime, end: datetime) -> None:
    rng = np.random.default_rng(19)
    number = round(_MACHINES * ALARMS_A_DAY * _DAYS)
    times = np.sort(rng.integers(to_us(start), to_us(end), number))
    rows, codes = rng.integers(0, _MACHINES, number), rng.integers(0, CODES, number)
    epochs = [epoch_of(machine) for machine in Plant(_MACHINES).ids]
    events = [
        EventRow(int(row) + 1, epochs[row], seq, int(code), int(at), IN_TIME)
        for seq, (row, code, at) in enumerate(zip(rows, codes, times, strict=True), start=1)
    ]
    for first in range(0, number, _A_COMMIT):
        batch = events[first : first + _A_COMMIT]
        stores.events.commit(EventWrite(batch[-1].at_us, events=batch))


def _forecast(stores: Stores, start: datetime, end: datetime) -> None:
    champion = stores.versions.champion()
    if champion is None:
        raise RuntimeError("the plant was settled without a model")
    said = np.full(len(champion.targets), 0.1, dtype=np.float32)
    machines = stores.machines.all()
    for at in grid(start, end, _GRID):
        stores.forecasts.add(
            [StoredForecast(one.row_id, at, champion.id, "ok", 55, 1.0, said) for one in machines]
        )


def _bytes_a_row(database: Database, table: str) -> float:
    if database.is_sqlite:
        size = f"SELECT sum(pgsize) FROM dbstat WHERE name = '{table}' OR name LIKE 'ix_{table}_%'"  # noqa: S608
    else:  # what is partitioned is its partitions
        size = (
            "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c WHERE c.relkind = 'r' AND (c.relname ="  # noqa: S608
            f" '{table}' OR c.oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = '{table}'::regclass))"
        )
    with database.read() as connection:
        rows = int(connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one())  # noqa: S608 - our names
        return float(connection.exec_driver_sql(size).scalar_one()) / rows


def main() -> None:
    """Weigh, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--database-url", help="an empty PostgreSQL database; SQLite unless given")
    weighed = footprint(parser.parse_args().database_url)
    Console().print({name: round(size) for name, size in asdict(weighed).items()})
    Console().print(f"a machine adds {weighed.machine_day / 1e3:.1f} kB a day")


if __name__ == "__main__":
    main()
