"""Enrolment: machines learned one after the other through the real API, and what it costs whom.

A service on an empty database, its plant clock at the end of the log. Each machine is enrolled, its history
loaded and learned before the next one comes. Meanwhile a client requests forecasts, so that the time of
an answer during training stands beside the same when the service is idle.
"""

import argparse
import gzip
import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import httpx
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.servers import HOST, Serving, alarmcast, mosquitto
from edge_agent.simulator.catalogue import catalogue_csv
from edge_agent.simulator.log_file import write_log
from service.learning.metrics import average_score, forgetting

ALPI_MACHINES = "0,1,2,3,5,6,7,9,10,12,13,14,15,17"
ALPI_TARGETS = "21,23,24,25,26,28,29,31,45,48,53,97,132,137,139"
STAGES = ("dataset", "training", "memory", "exams", "weights", "rest")
IDLE_SECONDS = 10.0


@dataclass
class Asker:
    """Asks for a forecast again and again, and notes when and how long each answer took."""

    address: str
    headers: dict[str, str]
    asked: list[tuple[float, float]] = field(default_factory=list)
    _ending: Event = field(default_factory=Event)

    def start(self) -> None:
        """Begin."""
        Thread(target=self._ask, daemon=True).start()

    def stop(self) -> None:
        """End."""
        self._ending.set()

    def p99(self, spans: list[tuple[float, float]]) -> float:
        """Return the time of an answer, in milliseconds, that 99 of 100 stayed below in these spans."""
        took = [1000 * seconds for at, seconds in self.asked if any(a <= at < b for a, b in spans)]
        return quantiles(took, n=100)[98]

    def _ask(self) -> None:
        with httpx.Client(headers=self.headers) as client:
            while not self._ending.is_set():
                began = time.monotonic()
                if client.get(self.address).is_success:
                    self.asked.append((began, time.monotonic() - began))
                self._ending.wait(0.01)


def main() -> None:
    """Enrol, measure, print, and write JSON if asked to."""
    options = _options()
    with TemporaryDirectory(prefix="alarmcast-enrolment-") as folder:
        log, machines, catalogue = _data(options, Path(folder))
        end = _last_moment(log)
        environment = {
            "ALARMCAST_CLOCK_WALL_ORIGIN": datetime.now(UTC).isoformat(),
            "ALARMCAST_CLOCK_PLANT_ORIGIN": end.isoformat(),
            "ALARMCAST_RETENTION_DAYS": "3650",
        }
        data = Path(folder) / "data"
        data.mkdir()
        with mosquitto() as broker, alarmcast(data, broker, environment=environment) as service:
            result = _enrol_all(service, log, machines, catalogue)
        result["database_mb"] = round(
            sum(file.stat().st_size for file in data.glob("alarmcast.sqlite3*")) / 1e6, 1
        )
        result["weights_mb"] = round(sum(file.stat().st_size for file in data.glob("weights/*")) / 1e6, 1)
    _show(result)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--log", type=Path, help="timestamp,alarm,serial as .csv or .csv.gz; simulated unless given"
    )
    parser.add_argument("--machines", default=ALPI_MACHINES, help="serials in the log, in the order to enrol them")
    parser.add_argument("--targets", default=ALPI_TARGETS, help="codes to forecast")
    parser.add_argument("--simulated", type=int, default=6, help="how many machines to simulate without a log")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    return parser.parse_args()


def _data(options: argparse.Namespace, folder: Path) -> tuple[Path, list[str], str]:
    if options.log:
        targets = set(options.targets.split(","))
        rows = "".join(f"{code},Alarm {code},medium,yes\n" for code in sorted(targets, key=int))
        return options.log, options.machines.split(","), f"code,text,severity,target\n{rows}"
    log = folder / "simulated.csv"
    write_log(log, machines=options.simulated, days=90, end=datetime.now(UTC), seed=19)
    return log, [str(number) for number in range(options.simulated)], catalogue_csv()


def _last_moment(log: Path) -> datetime:
    with gzip.open(log, "rt") if log.suffix == ".gz" else log.open() as lines:
        next(lines)
        last = max(line.split(",", 1)[0] for line in lines)
    at = datetime.fromisoformat(last)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)) + timedelta(minutes=1)


def _enrol_all(service: Serving, log: Path, machines: list[str], catalogue: str) -> dict[str, Any]:
    rows = []
    address, bearer = f"http://{HOST}:{service.port}", {"Authorization": f"Bearer {service.key}"}
    asker = Asker(f"{address}/v1/machines/fleet/m{machines[0]}/forecast", bearer)
    training: list[tuple[float, float]] = []
    with httpx.Client(base_url=address, headers=bearer, timeout=600) as client:
        headers = {"Content-Type": "text/csv"}
        client.post("/v1/catalogue", content=catalogue.encode(), headers=headers).raise_for_status()
        for serial in machines:
            rows.append(enrol(client, log, serial, training))
            Console(stderr=True).print(_line(rows[-1]))
            if len(rows) == 1:
                asker.start()
        began = time.monotonic()
        time.sleep(IDLE_SECONDS)
        idle = [(began, time.monotonic())]
        asker.stop()
        champion = next(one for one in client.get("/v1/models").json()["models"] if one["status"] == "champion")
        detail = client.get(f"/v1/models/{champion['version']}").json()
    return {
        "enrolments": rows,
        "champion": champion["version"],
        "scores": _scores(detail),
        "kl_to_uniform": detail["report"]["memory"]["kl_to_uniform"],
        "forecast_p99_ms": {
            "idle": round(asker.p99(idle), 2),
            "while_training": round(asker.p99(training[1:]), 2),
            "ratio": round(asker.p99(training[1:]) / asker.p99(idle), 2),
        },
    }


def enrol(client: httpx.Client, log: Path, serial: str, training: list[tuple[float, float]]) -> dict[str, Any]:
    """Enrol a machine, load its past, wait until it is learned, and return how long what took.

    When it was learned, in monotonic time, is added to ``training``.
    """
    body = {"site": "fleet", "machine": f"m{serial}", "name": f"Machine {serial}", "time_zone": "UTC"}
    job = client.post("/v1/machines", json=body).raise_for_status().json()["job"]["id"]
    began = time.monotonic()
    with log.open("rb") as file:
        loaded = client.post(
            f"/v1/machines/fleet/m{serial}/history",
            content=file.read(),
            params={"serial": serial, "name": log.name},
        ).raise_for_status()
    load_seconds, began = time.monotonic() - began, time.monotonic()
    while (state := client.get(f"/v1/jobs/{job}").json())["state"] in ("collecting", "queued", "running"):
        time.sleep(0.05)
    training.append((began, time.monotonic()))
    row = {
        "machine": serial,
        "events": loaded.json()["stored"],
        "load_seconds": round(load_seconds, 2),
        "state": state["state"],
        "message": state["message"],
        "job_seconds": round(time.monotonic() - began, 2),
    }
    if state["model_version"]:
        report = client.get(f"/v1/models/{state['model_version']}").json()["report"]
        rest = row["job_seconds"] - sum(report["seconds"].values())
        row |= {"windows": report["windows"]["train"], "seconds": report["seconds"] | {"rest": round(rest, 2)}}
    return row


def _scores(detail: dict[str, Any]) -> dict[str, float]:
    """Return S_T and F_T over the exams, of each figure, along the line of versions that led to the champion."""
    machines, line = detail["machines"], list(detail["matrix"].values())
    scores: dict[str, float] = {}
    for figure in ("average_precision", "brier_skill", "macro_f1"):
        table = np.array(
            [[_value(version.get(machine), figure) for machine in machines] for version in line], dtype=np.float64
        )
        scores[f"S_T {figure}"] = round(average_score(table), 4)
        scores[f"F_T {figure}"] = round(forgetting(table), 4)
    return scores


def _value(figures: dict[str, float | None] | None, name: str) -> float:
    value = figures[name] if figures else None
    return float("nan") if value is None else value


def _line(row: dict[str, Any]) -> str:
    return f"machine {row['machine']}: {row['state']} after {row['job_seconds']} s. {row['message'] or ''}"


def _show(result: dict[str, Any]) -> None:
    table = Table(
        "machine", "events", "windows", "load", *STAGES, "in all", "state", title="Seconds per enrolment"
    )
    for row in result["enrolments"]:
        seconds = row.get("seconds", {})
        cells = [f"{seconds.get(stage, 0):.1f}" for stage in STAGES]
        table.add_row(
            row["machine"],
            str(row["events"]),
            str(row.get("windows", "")),
            f"{row['load_seconds']:.1f}",
            *cells,
            f"{row['job_seconds']:.1f}",
            row["state"],
        )
    console = Console()
    console.print(table)
    console.print({name: value for name, value in result.items() if name != "enrolments"})


if __name__ == "__main__":
    main()
