"""One point of a growth curve: how fast a backlog, a forecast and a refresh are in a plant of some size."""

import random
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import httpx
import numpy as np

from benchmarks.backlog import drained, inserted
from benchmarks.load_phase import Host, Running, running
from benchmarks.observers import GRID, set_clock
from benchmarks.servers import HOST, mosquitto, wait_until
from benchmarks.synthetic_plant import Plant, catalogue, model, settle
from forecasting.history import HistorySpec
from forecasting.window import grid_floor
from service.app.configuration import load_settings
from service.app.stores import open_stores
from wire.timestamps import to_us

Figures = dict[str, float]
_REQUESTS = 100
_REFRESHES = 3
_LARGE = 1000  # machines, from which on a refresh needs more room on the grid
_SCAN = "SELECT machine_id, at_us, code FROM events WHERE machine_id = ? AND at_us >= ? AND flag = 0"


def serving_point(plant: Plant) -> dict[str, Figures]:
    """Measure ingest and forecasts, each with its limit."""
    with TemporaryDirectory(prefix="alarmcast-growth-") as folder, mosquitto() as port:
        now = datetime.now(UTC)
        with open_stores(load_settings(data_dir=Path(folder))) as stores:
            settle(stores, plant, now)
        host = Host(plant, port, Path(folder))
        with running(host, set_clock(now, 1.0)) as run:
            limit = inserted()
            ingest = {"ours": drained(run), "limit": limit}
            forecast = _one_forecast(run)
        speed = 30.0 if plant.machines >= _LARGE else 90.0
        with running(host, set_clock(now + timedelta(hours=1), speed)) as run:
            refresh = {"ours": _refresh(run), "limit": _scan_and_pass(plant, Path(folder), run.clock.now())}
    return {"ingest": ingest, "forecast": forecast, "refresh": refresh}


def _one_forecast(run: Running) -> Figures:
    """Return the milliseconds of a forecast as of an hour ago, which is not cached, beside those of no answer."""
    chance, ids = random.Random(3), run.host.plant.ids  # noqa: S311 - a load, no secret
    at = (run.clock.now() - timedelta(hours=1)).isoformat()
    headers = {"Authorization": f"Bearer {run.asked.key}"}
    ours, limit = [], []
    with httpx.Client(base_url=f"http://{HOST}:{run.asked.port}", headers=headers, timeout=60) as client:

        def get(path: str, **params: str) -> float:
            began = time.perf_counter()
            client.get(path, params=params).raise_for_status()
            return 1000 * (time.perf_counter() - began)

        for _ in range(_REQUESTS):
            machine = chance.choice(ids)
            limit.append(get("/livez"))
            ours.append(get(f"/v1/machines/{machine.site}/{machine.machine}/forecast", at=at))
    return {"ours": median(ours), "limit": median(limit)}


def _refresh(run: Running) -> float:
    """Return the seconds from a moment of the grid until all forecasts are published, after the first."""
    patience = 60 + 2 * _REFRESHES * run.clock.wall_seconds(GRID)
    wait_until(lambda: len(run.watch.refreshed()) > _REFRESHES, "the grid was refreshed a few times", patience)
    delays = run.watch.refreshed()
    return median(delays[at] for at in sorted(delays)[1:])


def _scan_and_pass(plant: Plant, folder: Path, now: datetime) -> float:
    """Return the seconds of reading every machine's window and of one forward pass over all of them."""
    served = model(catalogue(plant.codes))
    since = to_us(grid_floor(now, GRID) - served.lookback)
    features = np.zeros((plant.machines, plant.codes), dtype=np.float32)
    file = folder / "alarmcast.sqlite3"
    history = np.zeros(
        (plant.machines, len(served.vocabulary.targets), HistorySpec().width + HistorySpec().machine_width),
        dtype=np.float32,
    )
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        began = time.monotonic()
        for machine in range(1, plant.machines + 1):
            connection.execute(_SCAN, (machine, since)).fetchall()
        served.network.logits(features, history)
        return time.monotonic() - began
