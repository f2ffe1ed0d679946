"""A machine's past in bulk, from its log file to committed events: against inserting rows that are ready.

Ours finds a CSV of 250,000 alarms of a year and reads it twice (once for its digest, so that a broken file is
refused before a row of it is stored), judges every row and commits. The limit is handed the very rows, as tuples,
and only inserts them, in batches of the same size.
"""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.inserts import inserting
from benchmarks.report import ROUNDS, Figure, run
from benchmarks.seeded_store import machine_ids, prepare
from service.app.configuration import load_settings
from service.app.gc_tuning import freeze
from service.app.stores import open_stores
from service.ingest.service import TimePolicy
from service.learning.history_file import ImportFile
from service.learning.history_import import BATCH, load_history
from wire.timestamps import to_us

_ALARMS, _SPAN, _CODES = 250_000, timedelta(days=380), 150


def measure(rounds: int) -> list[Figure]:
    """Load and insert in turns."""
    now = datetime.now(UTC).replace(microsecond=0)
    alarms = _alarms(now)
    rows = [(1, number, 1, code, to_us(at), to_us(now), 0) for number, (at, code) in enumerate(alarms, start=2)]
    limits, ours = [], []
    freeze()  # as a service does at its start
    with TemporaryDirectory() as folder:
        log = Path(folder) / "history.csv"
        lines = "".join(f"{at:%Y-%m-%d %H:%M:%S.%f},{code},1\n" for at, code in alarms)
        log.write_text(f"timestamp,alarm,serial\n{lines}", encoding="ascii")
        for _ in range(rounds):
            limits.append(len(rows) / inserting(rows, batch=BATCH))
            ours.append(len(rows) / _loading(log, now))
    name = "bulk history load, from a CSV to committed"
    return [Figure(name, "`sqlite3.executemany` of the same rows, prepared", "events/s", limits, ours, 0.5)]


def _alarms(now: datetime) -> list[tuple[datetime, int]]:
    rng = np.random.default_rng(5)
    seconds = np.sort(rng.uniform(0, _SPAN.total_seconds(), _ALARMS))
    codes = rng.integers(0, _CODES, _ALARMS)
    times = [now - _SPAN + timedelta(seconds=at) for at in seconds.tolist()]
    return list(zip(times, codes.tolist(), strict=True))


def _loading(log: Path, now: datetime) -> float:
    with TemporaryDirectory() as folder:
        data_dir = Path(folder)
        prepare(data_dir, machines=1)
        with open_stores(load_settings(data_dir=data_dir)) as stores:
            machine = stores.machines.get(machine_ids(1)[0])
            started = time.monotonic()
            file = ImportFile(log, serial="1")
            loaded = load_history(machine, file, recorder=stores.events, now=now, policy=TimePolicy())
            seconds = time.monotonic() - started
    if loaded.stored != _ALARMS:
        raise RuntimeError(f"{_ALARMS} alarms stand in the file, but {loaded.stored} were stored")
    return seconds


if __name__ == "__main__":
    run(__doc__, measure, rounds=ROUNDS)
