"""Databases as every released schema knew them: small, filled with plain SQL, read by nobody's code of today."""

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save
from sqlalchemy import Connection, text

from service.database.weight_files import WeightsFolder
from tests.service.conftest import EPOCH, NOW, small_model
from wire.timestamps import to_us

AT = to_us(NOW)
HOUR = 3_600_000_000
SAID = np.array([0.7, 0.2], dtype="<f4").tobytes()


class Past:
    """Writes rows into a database of an old schema; numbers are given by the database, from 1."""

    def __init__(self, connection: Connection, weights: Path) -> None:
        self._connection = connection
        self.folder, self.weights = weights, WeightsFolder(weights).save(small_model())

    def run_on_postgresql(self, statement: str) -> None:
        if self._connection.dialect.name == "postgresql":
            self._connection.exec_driver_sql(statement)

    def end_jobs_in_plant_time(self) -> None:
        self._connection.exec_driver_sql("UPDATE jobs SET finished_plant_us = finished_us")

    def add(self, table: str, **row: Any) -> None:
        columns, places = ", ".join(row), ", ".join(f":{name}" for name in row)
        self._connection.execute(text(f"INSERT INTO {table} ({columns}) VALUES ({places})"), row)  # noqa: S608

    def change(self, table: str, *, machine_id: int, **row: Any) -> None:
        changes = ", ".join(f"{name} = :{name}" for name in row)
        statement = f"UPDATE {table} SET {changes} WHERE machine_id = :machine_id"  # noqa: S608 - our own names
        self._connection.execute(text(statement), row | {"machine_id": machine_id})


def first_tables(past: Past, **machine: Any) -> None:
    """0001: machines, events, gaps, quarantine, catalogue, a version that serves, and its forecasts."""
    past.add("catalogue", code=139, text="Film torn", severity="high", target=True)
    past.add("catalogue", code=26, text="Door open", severity="low", target=True)
    for name in ("filler-1", "filler-2"):
        past.add(
            "machines",
            site="padova",
            machine=name,
            name=f"The {name}",
            time_zone="Europe/Rome",
            registered_us=AT - 1000 * HOUR,
            **machine,
        )
    past.add("epochs", machine_id=1, epoch=EPOCH.hex)
    for seq in range(1, 6):
        row = {"epoch_id": 1, "seq": seq, "machine_id": 1, "code": 139 if seq % 2 else 26, "flag": 0}
        past.add("events", **row, at_us=AT - (10 - seq) * HOUR, received_us=AT - HOUR)
    past.add("events", epoch_id=1, seq=6, machine_id=1, code=7, flag=1, at_us=AT + HOUR, received_us=AT)
    gap = {"epoch_id": 1, "first_seq": 7, "last_seq": 9, "machine_id": 1, "reason": "spool_full"}
    past.add("gaps", **gap, first_us=AT - 3 * HOUR, last_us=AT - 2 * HOUR, received_us=AT)
    past.add("knocks", site="lyon", machine="wrapper-9", first_us=AT - HOUR, last_us=AT)
    past.add("quarantine", machine_id=1, **_refused("bad_code"), received_us=AT)
    past.add("quarantine", machine_id=None, **_refused("topic"), received_us=AT)


def _refused(reason: str) -> dict[str, Any]:
    topic = "alarmcast/v1/padova/filler-1/events"
    return {"topic": topic, "reason": reason, "detail": "code: wrong", "body": b'{"x": 1}', "sha256": "00" * 32}


def _first_model(past: Past, version: dict[str, Any], promotion: dict[str, Any]) -> None:
    report = json.dumps({"summary": "small"})
    past.add("model_versions", created_us=AT - 48 * HOUR, weights=past.weights, report=report, **version)
    past.add("promotions", version_id=1, at_us=AT - 47 * HOUR, **promotion)
    for hours in (20, 1):
        said = {"version_id": 1, "status": "ok", "events_seen": 5, "coverage": 1.0, "probabilities": SAID}
        past.add("forecasts", machine_id=1, as_of_us=AT - hours * HOUR, **said)


def schema_0001(past: Past) -> None:
    first_tables(past)
    _first_model(past, {}, {})
    told = {"agent": "1.0.0", "epoch": EPOCH.hex, "spooled": 3, "skew_ms": -40}
    past.add("agents", machine_id=1, online=True, heard_us=AT, **told)


def schema_0002(past: Past) -> None:
    """0002: enrolment, jobs, memories, exams; more to say of machines and versions."""
    first_tables(past, state="live", learned_us=AT - 47 * HOUR)
    _first_model(past, {"targets": "[139, 26]", "pruned": False}, {"reason": "better"})
    told = {"agent": "1.0.0", "epoch": EPOCH.hex, "spooled": 3, "skew_ms": -40, "since_us": AT - 900 * HOUR}
    past.add("agents", machine_id=1, online=True, heard_us=AT, **told)
    past.add("audit", at_us=AT - 50 * HOUR, who="api:10.0.0.7", action="enrol", subject="padova/filler-1")
    job = {"machine_id": 1, "kind": "enrol", "attempt": 1, "cut_off": 0, "progress": '{"stage": "waiting"}'}
    past.add("jobs", **job, state="promoted", created_us=AT - 50 * HOUR, finished_us=AT - 47 * HOUR, version_id=1)
    job["machine_id"] = 2
    past.add("jobs", **job, state="collecting", created_us=AT - 10 * HOUR)
    past.add("idempotency", key="once", request="padova/filler-1", job_id=1, created_us=AT - 50 * HOUR)
    past.add("tasks", version_id=1, machine_id=1, place=0, offered=400, frequency='{"139": 40, "26": 12}')
    for number in (1, 2):
        codes, counts = np.array([26, 139], dtype="<i4"), np.array([1, number], dtype="<i4")
        window = {"codes": codes.tobytes(), "counts": counts.tobytes(), "outcomes": codes[1:].tobytes()}
        past_of = {"tracked": codes[1:].tobytes(), "history": np.ones(3, dtype="<f4").tobytes()}
        context = np.ones(2, dtype="<f4").tobytes()
        at_us = AT - (100 + number) * HOUR
        past.add("samples", machine_id=1, at_us=at_us, features=1, **window, **past_of, context=context)
        past.add("memories", version_id=1, sample_id=number, held_out=number == 2)
    past.add(
        "exams", machine_id=1, made_us=AT - 47 * HOUR, features=1, base_rate='{"139": 0.3}', windows=_windows()
    )
    figures = {"average_precision": 0.41, "brier_skill": 0.1, "macro_f1": 0.35, "by_code": "[]"}
    past.add("marks", version_id=1, exam_id=1, **figures, probabilities=zlib.compress(SAID * 2))


def schema_0003(past: Past) -> None:
    """0003: what became of forecasts."""
    schema_0002(past)
    codes, thresholds = np.array([139, 26], dtype="<i8"), np.array([0.5, 0.5], dtype="<f4")
    measure = {"codes": codes.tobytes(), "thresholds": thresholds.tobytes()}
    past.add("version_measures", version_id=1, lookback_us=29 * HOUR, horizon_us=8 * HOUR, **measure)
    past.add("scored", machine_id=1, through_us=AT - 12 * HOUR, late=0)
    outcome = {"events_came": 2, "unheard": False, "marks": bytes([5, 0]), "base_rates": SAID}
    kept = {"scored_us": AT - 11 * HOUR, "revised": 0, "stale": 0}
    past.add("outcomes", machine_id=1, as_of_us=AT - 20 * HOUR, horizon_end_us=AT - 12 * HOUR, **outcome, **kept)


def schema_0004(past: Past) -> None:
    """0004: notices, who is told of them, and what keeps them quiet."""
    schema_0003(past)
    quiet = {"from_us": AT - HOUR, "until_us": AT + HOUR, "who": "anna", "reason": "film changed"}
    past.add("shelves", machine_id=1, code=26, **quiet)
    past.add("maintenance", site="padova", machine=None, **quiet)
    past.add(
        "notices",
        machine_id=1,
        code=139,
        text="Film torn",
        severity="high",
        as_of_us=AT - HOUR,
        horizon_end_us=AT + 7 * HOUR,
        probability=0.7,
        threshold=0.5,
        model_version="v1",
        opened_us=AT - HOUR,
    )
    past.add("acknowledgements", machine_id=1, code=139, notice_id=1, at_us=AT, who="anna", note="on it")
    hook = {"url": "http://127.0.0.1:9/hook", "secret": "s" * 32, "severity": "medium", "enabled": True}
    past.add("webhooks", **hook, created_us=AT - 90 * HOUR)
    past.add("deliveries", notice_id=1, webhook_id=1, key="11" * 16, created_us=AT, attempts=2, next_try_us=AT)


def schema_0005(past: Past) -> None:
    """0005: people, their sessions, and keys of programs."""
    schema_0004(past)
    anna = {"name": "anna", "role": "operator", "sites": '["padova"]', "password": "$argon2id$kept"}
    past.add("users", **anna, must_change=False, created_us=AT - 90 * HOUR)
    token = {"digest": "ab" * 32, "created_us": AT - 2 * HOUR}
    past.add("sessions", prefix="0123456789ab", user_id=1, seen_us=AT - HOUR, expires_us=AT + 90 * HOUR, **token)
    past.add("keys", name="andon", prefix="ba9876543210", role="viewer", created_by="anna", **token)


def schema_0006(past: Past) -> None:
    """0006: which machines are let in at the broker."""
    schema_0005(past)
    name = "alarmcast-edge/padova/filler-1"
    past.add("credentials", machine_id=1, username=name, client_id=name, generation=2, issued_us=AT - 90 * HOUR)


def schema_0007(past: Past) -> None:
    """0007: events by month on PostgreSQL, the heights of epochs, weights beside their versions."""
    past.run_on_postgresql("CREATE TABLE events_2026_11 (LIKE events_in_time INCLUDING ALL)")
    november = "FOR VALUES FROM (1793491200000000) TO (1796083200000000)"
    past.run_on_postgresql(f"ALTER TABLE events_in_time ATTACH PARTITION events_2026_11 {november}")
    schema_0006(past)
    past.run_on_postgresql("UPDATE epochs SET last_seq = 6")
    past.add("weights", sha256=past.weights, body=(past.folder / f"{past.weights}.safetensors").read_bytes())


def schema_0008(past: Past) -> None:
    """0008: who is at work on the database, and whose turn it is."""
    schema_0007(past)
    past.add("turns", name="duties", owner="host-1", until_us=AT)
    report = '{"ready": true, "troubles": {}, "turns": ["duties"], "events_per_second": 1.5}'
    past.add("processes", name="host-1", roles="api,worker", since_us=AT - HOUR, seen_us=AT, report=report)


def schema_0009(past: Past) -> None:
    """0009: which installation this is."""
    schema_0008(past)
    past.add("installation", id=1, identity="5f0c9a52-6f5d-4b8e-9f43-0d6f1d3a7c11")


def schema_0010(past: Past) -> None:
    """0010: what was left out because a machine had too much of it."""
    schema_0009(past)
    past.add("excess", machine_id=1, kind="gaps", amount=7, since_us=AT - HOUR, last_us=AT)


def schema_0011(past: Past) -> None:
    """0011: when a job ended in plant time."""
    schema_0010(past)
    past.end_jobs_in_plant_time()


def schema_0012(past: Past) -> None:
    """0012: what agents report beside their alarms."""
    schema_0011(past)
    note = {"skipped": 3, "last_skipped": "byte 7: wrong", "last_skipped_us": AT - HOUR, "state_us": AT}
    past.change("agents", machine_id=1, **note)


RELEASED: dict[str, Callable[[Past], None]] = {
    "0001": schema_0001,
    "0002": schema_0002,
    "0003": schema_0003,
    "0004": schema_0004,
    "0005": schema_0005,
    "0006": schema_0006,
    "0007": schema_0007,
    "0008": schema_0008,
    "0009": schema_0009,
    "0010": schema_0010,
    "0011": schema_0011,
    "0012": schema_0012,
}


def _windows() -> bytes:
    arrays: dict[str, NDArray[Any]] = {
        "at": np.array([AT - 60 * HOUR, AT - 59 * HOUR], dtype=np.int64),
        "codes": np.array([26, 139], dtype=np.int64),
        "counts": np.ones((2, 2), dtype=np.int32),
        "outcomes": np.ones((2, 2), dtype=np.bool_),
        "tracked": np.array([139], dtype=np.int64),
        "history": np.ones((2, 1, 3), dtype=np.float32),
        "context": np.ones((2, 2), dtype=np.float32),
    }
    return zlib.compress(save(arrays))
