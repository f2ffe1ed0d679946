"""Whole processes: the service and its agents as a plant runs them, on a real Mosquitto."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from alarmcast import Client, Unreachable
from tests.conftest import Mosquitto, free_port, wait_until

COUNTED = (
    "SELECT site || '/' || machine, count(*) FROM events"
    " JOIN machines ON machines.id = machine_id GROUP BY site, machine"
)


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("ALARMCAST_")}


@dataclass
class Process:
    """A process of ours that a test may kill, with its words kept in a file."""

    command: list[str]
    log: Path
    environment: dict[str, str] = field(default_factory=dict)
    running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        environment = clean_environment() | self.environment
        with self.log.open("ab") as log:
            self.running = subprocess.Popen(self.command, stdout=log, stderr=log, env=environment)

    def kill(self) -> None:
        """End it as a power cut would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self.running is None:
            return
        self.running.send_signal(how)
        try:
            self.running.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.running.kill()
            self.running.wait()
            pytest.fail(f"the process did not end on {how.name}; its log: {self.log.read_text()[-2000:]}")
        finally:
            self.running = None

    def words(self) -> str:
        return self.log.read_text()


@dataclass
class LocalKey(httpx.Auth):
    """Asks with the key that the service left in its folder when it last started."""

    file: Path

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        if self.file.exists():
            request.headers["Authorization"] = f"Bearer {self.file.read_text().strip()}"
        yield request


@dataclass
class Plant:
    """A broker, a service and any number of agents, all real."""

    folder: Path
    broker: Mosquitto
    port: int = field(default_factory=free_port)
    processes: list[Process] = field(default_factory=list)
    service: Process = field(init=False)
    api: Client = field(init=False)
    module: str = "service"  # what is run as the service
    service_broker_port: int | None = None  # the broker's own unless the service reaches it through a proxy
    data_dir: Path | None = None
    spools: Path | None = None
    environment: dict[str, str] = field(default_factory=dict)  # of the service

    def __post_init__(self) -> None:
        command = ["-m", self.module, "serve", "--data-dir", str(self.data), "--port", str(self.port)]
        command += ["--broker-port", str(self.service_broker_port or self.broker.port)]
        self.service = self._process(command, "service")
        self.service.environment = self.environment
        # No connection outlives its answer, because the service may be killed and started again.
        alone = httpx.Limits(max_keepalive_connections=0)
        self.api = Client(
            http=httpx.Client(base_url=self.address, auth=LocalKey(self.key_file), timeout=120, limits=alone)
        )

    @property
    def data(self) -> Path:
        return self.data_dir or self.folder / "data"

    @property
    def key_file(self) -> Path:
        return self.data / "admin.token"

    @property
    def key(self) -> str:
        return self.key_file.read_text().strip()

    def start_service(self) -> None:
        self.service.start()
        wait_until(self.is_alive, "the service answers")

    def is_alive(self) -> bool:
        try:
            return self.api.health.live().status == "alive"
        except Unreachable:
            return False

    def is_ready(self) -> bool:
        return self.is_alive() and self.api.health.ready().ready

    def get(self, path: str) -> httpx.Response:
        """Ask as somebody who does not have the client."""
        return self.api.http.get(path)

    def post(self, path: str, **request: Any) -> httpx.Response:
        """Order as somebody who does not have the client."""
        return self.api.http.post(path, **request)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def enrol(self, machine: str) -> None:
        """Enrol a machine over REST, which costs less than starting a command."""
        self.api.enrolment.enrol(machine)

    def admin(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "service", "admin", *arguments, "--data-dir", str(self.data)]
        return subprocess.run(command, capture_output=True, text=True, env=clean_environment(), check=False)

    def agent(self, machine: str, log: Path, **more: object) -> Process:
        """Return an agent that tails a log; not started yet."""
        site, name = machine.split("/")
        options = {
            "site": site,
            "machine": name,
            "spool-path": self.spool(machine),
            "broker-port": self.broker.port,
            "source-kind": "tail",
            "source-path": log,
        } | {key.replace("_", "-"): value for key, value in more.items()}
        flags = [str(part) for key, value in options.items() for part in (f"--{key}", value)]
        return self._process(["-m", "edge_agent", "run", *flags], f"agent-{name}")

    def spool(self, machine: str) -> Path:
        return (self.spools or self.folder) / f"{machine.replace('/', '+')}.spool"

    def spooled(self, machine: str) -> int:
        """Return how many events of a machine still wait for an ack; -1 while the agent has made no spool."""
        return self._ask_spool(machine, "SELECT count(*) FROM events")

    def gaps_spooled(self, machine: str) -> int:
        """Return how many gap records of a machine still wait for an ack; -1 as above."""
        return self._ask_spool(machine, "SELECT count(*) FROM gaps")

    def given(self, machine: str) -> int:
        """Return how many numbers the spool has given to events; -1 as above."""
        return self._ask_spool(machine, "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'events'")

    def _ask_spool(self, machine: str, query: str) -> int:
        try:
            with closing(sqlite3.connect(f"file:{self.spool(machine)}?mode=ro", uri=True)) as spool:
                return int(spool.execute(query).fetchone()[0])
        except sqlite3.OperationalError:
            return -1

    def left_the_spool(self, machine: str) -> set[int]:
        """Return the numbers that were given to events and are no longer waiting: those that were acked."""
        if not self.spool(machine).exists():
            return set()
        with closing(sqlite3.connect(f"file:{self.spool(machine)}?mode=ro", uri=True)) as spool, spool:
            spool.execute("BEGIN")
            given = spool.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").fetchone()
            waiting = {seq for (seq,) in spool.execute("SELECT seq FROM events")}
        return set(range(1, (given[0] if given else 0) + 1)) - waiting

    def stored(self, machine: str) -> list[tuple[int, int]]:
        """Return (seq, code) of everything stored for a machine, read from the file itself."""
        site, name = machine.split("/")
        query = (
            "SELECT seq, code FROM events JOIN machines ON machines.id = machine_id"
            " WHERE site = ? AND machine = ? ORDER BY epoch_id, seq"
        )
        with closing(sqlite3.connect(f"file:{self.data / 'alarmcast.sqlite3'}?mode=ro", uri=True)) as database:
            return list(database.execute(query, (site, name)))

    def counted(self) -> dict[str, int]:
        """Return how many events of each machine the database holds."""
        path = self.data / "alarmcast.sqlite3"
        try:
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=1)) as database:
                return dict(database.execute(COUNTED).fetchall())
        except sqlite3.OperationalError:
            return {}

    def arrived(self, machine: str) -> list[int]:
        """Return a machine's codes in the order in which batches of them were committed."""
        site, name = machine.split("/")
        query = (
            "SELECT code FROM events JOIN machines ON machines.id = machine_id"
            " WHERE site = ? AND machine = ? ORDER BY received_us, seq"
        )
        with closing(sqlite3.connect(f"file:{self.data / 'alarmcast.sqlite3'}?mode=ro", uri=True)) as database:
            return [code for (code,) in database.execute(query, (site, name))]

    def status(self) -> dict[str, Any]:
        return dict(self.get("/v1/status").json())

    def _process(self, arguments: list[str], name: str) -> Process:
        process = Process([sys.executable, *arguments], self.folder / f"{name}.log")
        self.processes.append(process)
        return process


@pytest.fixture
def plant(tmp_path: Path, mosquitto: Mosquitto) -> Iterator[Plant]:
    plant = Plant(tmp_path, mosquitto)
    yield plant
    for process in reversed(plant.processes):
        if process.running is not None:
            process.running.kill()
            process.running.wait()


def write_alarms(log: Path, first: int, count: int) -> None:
    """Let a machine raise alarms whose codes tell their order."""
    with log.open("a") as file:
        for number in range(first, first + count):
            file.write(json.dumps({"timestamp": "2026-11-16T00:00:00Z", "alarm": number}) + "\n")
