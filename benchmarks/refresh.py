"""A whole fleet's forecasts, made, stored and announced: against one scan of its windows and one forward pass.

A thousand machines, each with thirty days of 95 alarms a day, as the simulated ones have, and a model like the
product's: it reads each code's history of thirty days. Ours is what happens every fifteen minutes: the evidence
of every machine is read, turned into features, forecast, put into words, stored durably, encoded, and handed to
a real broker. The limit is a ``SELECT`` of the same windows by the driver and the network's forward pass over one
batch of ready inputs. The first refresh of a day counts base rates over ninety days as well; it is reported
separately.
"""

import sqlite3
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.inserts import Row, insert, opened
from benchmarks.report import ROUNDS, Figure, run
from benchmarks.seeded_store import CODES, TARGETS, prepare
from benchmarks.servers import mosquitto, wait_until
from forecasting.forecaster import Forecaster
from forecasting.history import HistorySpec
from forecasting.window import grid_floor
from service.app.configuration import load_settings
from service.app.gc_tuning import freeze
from service.app.service import Service
from service.app.stores import open_stores
from service.machines.evidence_store import WINDOWS
from wire.clock import PlantClock
from wire.timestamps import to_us

_MACHINES, _DAYS, _A_DAY = 1000, 30, 95
_A_COMMIT = 50  # machines
_STEP = timedelta(minutes=15)


def measure(rounds: int) -> list[Figure]:
    """Refresh and scan in turns."""
    limits, ours, first = [], [], 0.0
    start = grid_floor(datetime.now(UTC), _STEP)
    with TemporaryDirectory() as folder, mosquitto() as broker:
        data_dir = Path(folder)
        prepare(data_dir, machines=_MACHINES, history=True)
        _fill(data_dir / "alarmcast.sqlite3", start)
        settings = load_settings(data_dir=data_dir, broker_port=broker)
        with open_stores(settings) as stores:
            service = Service(settings, stores)
            service.ingest.mqtt.start()
            wait_until(lambda: service.ingest.mqtt.connected, "the service is connected")
            model = service.forecasts.service.champion.current().forecaster
            scanned = opened(data_dir / "alarmcast.sqlite3")
            freeze()  # as a service does at its start
            for place in range(rounds + 1):
                at = start + place * _STEP
                stopped = PlantClock(plant_origin=at, speed=0.0)
                seconds = _timed(replace(service.forecasts.thread.refresh, clock=stopped).run_grid)
                if place == 0:
                    first = seconds
                    continue
                ours.append(seconds)
                limits.append(scanning(scanned, model, at))
            scanned.close()
            service.ingest.mqtt.stop()
    return [
        Figure(
            f"fleet refresh, {_MACHINES:,} machines",
            "one SQL scan of the windows and one batched numpy forward pass",
            "s",
            limits,
            ours,
            3,
            at_most=True,
            beside={"a day's first": [first / one for one in limits]},
        )
    ]


def scanning(connection: sqlite3.Connection, model: Forecaster, at: datetime) -> float:
    """Return the seconds of reading every window and of the forward pass."""
    rng = np.random.default_rng(3)
    inputs = rng.random((_MACHINES, CODES), dtype=np.float32)
    figures = HistorySpec().width + HistorySpec().machine_width
    history = rng.random((_MACHINES, TARGETS, figures), dtype=np.float32)
    machines = ", ".join(str(row) for row in range(1, _MACHINES + 1))
    query = WINDOWS.replace(":machines", f"({machines})")

    def limit() -> None:
        rows = connection.execute(query, {"start": to_us(at - model.lookback), "end": to_us(at)}).fetchall()
        if len(rows) < _MACHINES * (_DAYS - 1) * _A_DAY:
            raise RuntimeError(f"only {len(rows)} events were read")
        model.network.logits(inputs, history)

    return _timed(limit)


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _fill(file: Path, end: datetime) -> None:
    """Give every machine its thirty days, straight into the table."""
    rng = np.random.default_rng(11)
    span = int(timedelta(days=_DAYS) / timedelta(microseconds=1))
    alarms = _DAYS * _A_DAY
    connection, rows = opened(file), list[Row]()
    for machine in range(1, _MACHINES + 1):
        times = to_us(end) - np.sort(rng.integers(0, span, alarms))[::-1]
        codes = rng.zipf(1.4, alarms) % CODES
        rows += [
            (machine, seq, machine, code, at, at, 0)
            for seq, (at, code) in enumerate(zip(times.tolist(), codes.tolist(), strict=True), start=1)
        ]
        if machine % _A_COMMIT == 0:
            insert(connection, rows, batch=len(rows))
            rows.clear()
    connection.close()


if __name__ == "__main__":
    run(__doc__, measure, rounds=ROUNDS)
