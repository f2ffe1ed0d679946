"""A machine enrolled, from its history in the store to its version serving: against the training steps alone.

And a forecast over REST while that goes on: against the same when the service is idle. A plant of machines with a
year of simulated alarms each, enrolled one after the other through the real API; the first, which there is nothing
to replay for, is not counted. Whole is everything after the upload of the past: noticing that there is enough of
it, the process that trains, its windows, training, the memory, everybody's exams, the gate, the commit. The
steps are those of the very same learning. Meanwhile, and for as long before, a client requests forecasts. The
share that the gate let serve stands beside it.
"""

import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from benchmarks.enrolment import Asker, enrol
from benchmarks.report import ROUNDS, Figure, run
from benchmarks.servers import HOST, Serving, alarmcast, mosquitto
from edge_agent.simulator.catalogue import catalogue_csv
from edge_agent.simulator.log_file import write_log

_DAYS, _IDLE = 365, 10.0
_SETTLED = 6.0  # seconds after a learning: the process that will train next is loaded then, which is not idle


def measure(rounds: int) -> list[Figure]:
    """Enrol a machine a round, idle before it."""
    with TemporaryDirectory(prefix="alarmcast-learning-") as folder, mosquitto() as broker:
        log, data = Path(folder) / "simulated.csv", Path(folder) / "data"
        data.mkdir()
        write_log(log, machines=rounds + 1, days=_DAYS, end=datetime.now(UTC), seed=19)
        with alarmcast(data, broker) as service:
            rows, idle, busy = _enrolled(service, log, rounds)
    steps = [row["seconds"]["training"] for row in rows]
    whole = [row["job_seconds"] for row in rows]
    beside = {
        stage: [row["seconds"][stage] / one for row, one in zip(rows, steps, strict=True)]
        for stage in ("dataset", "memory", "exams", "rest")
    }
    beside["promoted"] = [mean(row["state"] == "promoted" for row in rows)]
    return [
        Figure(
            "enrolment, whole", "its training steps alone", "s", steps, whole, 1.3, at_most=True, beside=beside
        ),
        Figure("forecast over REST while a machine is learned, p99", "idle", "ms", idle, busy, 2, at_most=True),
    ]


def _enrolled(service: Serving, log: Path, rounds: int) -> tuple[list[dict[str, Any]], list[float], list[float]]:
    """Return how each enrolment went, and the p99 of a forecast before and during it."""
    address, bearer = f"http://{HOST}:{service.port}", {"Authorization": f"Bearer {service.key}"}
    asker = Asker(f"{address}/v1/machines/fleet/m0/forecast", bearer)
    rows, idle, busy = [], [], []
    with httpx.Client(base_url=address, headers=bearer, timeout=600) as client:
        csv = {"Content-Type": "text/csv"}
        client.post("/v1/catalogue", content=catalogue_csv().encode(), headers=csv).raise_for_status()
        enrol(client, log, "0", [])
        asker.start()
        for number in range(1, rounds + 1):
            time.sleep(_SETTLED)
            began = time.monotonic()
            time.sleep(_IDLE)
            idle.append(asker.p99([(began, time.monotonic())]))
            learning: list[tuple[float, float]] = []
            rows.append(enrol(client, log, str(number), learning))
            busy.append(asker.p99(learning))
        asker.stop()
    return rows, idle, busy


if __name__ == "__main__":
    run(__doc__, measure, rounds=ROUNDS)
