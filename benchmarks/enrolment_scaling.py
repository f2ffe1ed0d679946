"""One enrolment into a fleet of any size, and the parts of its time.

One machine is learned for real; the rest of the fleet are its doubles, with its memory and its exam, written
straight into the database. Then one more machine is enrolled over the API, and what is measured is that.
"""

import csv
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sqlalchemy import Connection, insert, select, update

import alarmcast as api
from benchmarks.servers import HOST, alarmcast, mosquitto
from benchmarks.synthetic_plant import CODES, Plant, catalogue, epoch_of, stock_up
from edge_agent.simulator.log_file import write_log
from service.app.configuration import load_settings
from service.app.stores import open_stores
from service.database.tables import epochs, evaluation_results, holdout_sets, machines, samples, tasks
from service.learning.row_codec import DROPPED, HELD_OUT, REPLAYED, pack_marks, unpack_marks
from wire.enums import JobState, VersionStatus

_DAYS = 40
_FIRST, _NEW = "school/first", "school/new"
_WINDOWS_A_MACHINE = 8  # remembered at least, or a quarter of them held out would not be one for each
_REPLAYED, _HELD_OUT = 6, 2
_OPEN = (JobState.COLLECTING, JobState.QUEUED, JobState.RUNNING)
_AT_MOST = 900.0  # seconds


def enrolment_point(plant: Plant) -> dict[str, float]:
    """Enrol one machine into a fleet that has learned as many as the plant has, and as many codes."""
    memory = max(2000, (plant.machines + 1) * _WINDOWS_A_MACHINE)
    environment = {
        "ALARMCAST_MIN_TRAINING_WINDOWS": "200",
        "ALARMCAST_MEMORY_WINDOWS": str(memory),
        "ALARMCAST_RETENTION_DAYS": "3650",
        "ALARMCAST_REFRESH_DAYS": "0",
        "ALARMCAST_INTEGRITY_CHECK": "off",
    }
    now = datetime.now(UTC)
    with TemporaryDirectory(prefix="alarmcast-school-") as folder, mosquitto() as port:
        data, log = Path(folder) / "data", Path(folder) / "history.csv"
        data.mkdir()
        _write_history(log, plant.codes, now)
        with _asked(data, port, environment) as client:
            client.catalogue.add(_catalogue_csv(plant.codes))
            _learn(client, _FIRST, log, "0")
            if (first := client.models.list().models[0]).status is not VersionStatus.CHAMPION:
                client.models.promote(first.version, reason="its doubles are to be the fleet", force=True)
        with open_stores(load_settings(data_dir=data)) as stores:
            with stores.database.write() as connection:
                _double(connection, plant)
            stock_up(stores, plant, now, first=2)
        with _asked(data, port, environment) as client:
            return _learn(client, _NEW, log, "1")


@contextmanager
def _asked(data: Path, port: int, environment: dict[str, str]) -> Iterator[api.Client]:
    with (
        alarmcast(data, port, environment=environment) as service,
        api.Client(f"http://{HOST}:{service.port}", key=service.key) as client,
    ):
        yield client


def _learn(client: api.Client, machine: str, log: Path, serial: str) -> dict[str, float]:
    """Enrol a machine with its past; return the seconds of it all, from the past being there, and of its parts."""
    job = client.enrolment.enrol(machine).job.id
    began = time.monotonic()
    client.enrolment.load_history(machine, log, serial=serial)
    loaded = time.monotonic()
    while (state := client.jobs.get(job)).state in _OPEN:
        if time.monotonic() - loaded > _AT_MOST:
            raise TimeoutError(f"{machine} was not learned within {_AT_MOST:.0f} s")
        time.sleep(0.1)
    whole = time.monotonic() - loaded
    if state.model_version is None:
        raise RuntimeError(f"{machine} was not learned: {state.message}")
    parts = client.models.get(state.model_version).report["seconds"]
    rest = whole - sum(parts.values())
    return {"whole": whole, "load": loaded - began, **parts, "rest": rest}


def _write_history(log: Path, codes: int, now: datetime) -> None:
    """Write two machines' past with so many codes: the simulator's own, folded, or spread out over time."""
    write_log(log, machines=2, days=_DAYS, end=now, seed=19)
    if codes == CODES:
        return
    with log.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    spread = -(-codes // CODES)
    with log.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        for number, (at, code, serial) in enumerate(rows):
            writer.writerow([at, (int(code) + number // 50 % spread * CODES) % codes, serial])


def _catalogue_csv(codes: int) -> str:
    rows = (f"{one.code},{one.text},{one.severity},{'yes' if one.target else 'no'}" for one in catalogue(codes))
    return "\n".join(("code,text,severity,target", *rows)) + "\n"


def _double(connection: Connection, plant: Plant) -> None:
    """Write as many doubles of the one machine that was learned as make the fleet full."""
    first = connection.execute(select(tasks.c.machine_id)).scalar_one()
    rows = range(first + 1, first + plant.machines)
    names = plant.ids[1:]
    template = connection.execute(select(machines).where(machines.c.id == first)).one()._asdict()
    _insert(
        connection,
        machines,
        [
            template | {"id": row, "site": name.site, "machine": name.machine}
            for row, name in zip(rows, names, strict=True)
        ],
    )
    spools = [
        {"id": row, "machine_id": row, "epoch": epoch_of(name)} for row, name in zip(rows, names, strict=True)
    ]
    _insert(connection, epochs, spools)
    _remember(connection, rows)
    exam = connection.execute(select(holdout_sets)).one()._asdict()
    _insert(connection, holdout_sets, [exam | {"id": row, "machine_id": row} for row in rows])
    mark = connection.execute(select(evaluation_results)).one()._asdict()
    _insert(connection, evaluation_results, [mark | {"holdout_set_id": row} for row in rows])


def _remember(connection: Connection, rows: range) -> None:
    """Give every machine a small share of what the first one left in memory."""
    task = connection.execute(select(tasks)).one()._asdict()
    marks = np.array(unpack_marks(task["kept"]))
    for mark, share in ((REPLAYED, _REPLAYED), (HELD_OUT, _HELD_OUT)):
        places = np.flatnonzero(marks == mark)
        marks[np.setdiff1d(places, places[:: max(1, len(places) // share)][:share])] = DROPPED
    task["kept"] = pack_marks(marks)
    connection.execute(update(tasks).values(kept=task["kept"]))
    stored = connection.execute(select(samples)).one()._asdict()
    first = stored["id"] + 1
    _insert(connection, samples, [stored | {"id": first + n, "machine_id": row} for n, row in enumerate(rows)])
    values = [task | {"machine_id": row, "position": row, "samples_id": first + n} for n, row in enumerate(rows)]
    _insert(connection, tasks, values)


def _insert(connection: Connection, table: Any, rows: list[dict[str, Any]]) -> None:
    if rows:
        connection.execute(insert(table), rows)
