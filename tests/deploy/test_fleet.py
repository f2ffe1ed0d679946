"""What ``docker compose up`` does, done without Docker: the past prepared, then broker, service and agents."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from shutil import copytree
from typing import Any
from urllib.parse import urlencode

import pytest

from edge_agent import settings as edge_settings
from edge_agent.simulator import alarms, personality
from tests.conftest import free_port, wait_until
from tests.deploy.compose import Compose, Container
from tests.deploy.conftest import REPOSITORY, DeployedBroker

PROGRAMS = Path(sys.executable).parent
# A working week's middle, so that every machine has alarms on both sides of the seam, whenever the test is run.
SINCE = datetime(2026, 11, 11, 12, tzinfo=UTC)
BEFORE, NOW = SINCE - timedelta(days=1), SINCE + timedelta(days=1)
PLANT_CLOCK = {"CLOCK_WALL_ORIGIN": datetime.now(UTC).isoformat(), "CLOCK_PLANT_ORIGIN": NOW.isoformat()}
# Enough history to learn from.
QUICK = {"FLEET_SINCE": SINCE.isoformat(), "HISTORY_DAYS": "40"}


@dataclass(frozen=True)
class Fleet:
    """The volumes that prepare.sh fills, as folders."""

    data: Path
    config: Path
    said: str = ""

    def environment(self, container: Container, **moved: object) -> dict[str, str]:
        """Return the variables of a container, with our folder, our clock and what else is moved."""
        prefix = "ALARMCAST_EDGE_" if container.is_agent else "ALARMCAST_"
        folder = {} if container.is_agent else {"DATA_DIR": self.data}
        ours = {f"{prefix}{name}".upper(): str(value) for name, value in (PLANT_CLOCK | folder | moved).items()}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ALARMCAST_")}
        here = {"PATH": f"{PROGRAMS}:{os.environ['PATH']}", "COLUMNS": "200"}
        return inherited | here | container.environment | ours

    def prepare(self, container: Container) -> str:
        """Run prepare.sh as its container would, and return what it said."""
        environment = self.environment(container) | QUICK | {"EDGE_CONFIG": str(self.config)}
        script = REPOSITORY / "deploy/compose/prepare.sh"
        done = subprocess.run(
            ["sh", script], env=environment, cwd=self.data, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def files(self) -> dict[str, str]:
        """Return every file and a digest of what it holds."""
        found = [
            file for folder in (self.data, self.config.parent) for file in folder.rglob("*") if file.is_file()
        ]
        return {str(file): sha256(file.read_bytes()).hexdigest() for file in found}

    def agent(self, agent: Container) -> edge_settings.Settings:
        return edge_settings.load(self.config, {}, agent.environment)


@pytest.fixture(scope="module")
def fleet(compose: Compose, tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    folders = Fleet(tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("config") / "edge.toml")
    return Fleet(folders.data, folders.config, folders.prepare(compose.containers["prepare"]))


def test_the_machines_that_get_a_past_are_those_that_have_an_agent(compose: Compose, fleet: Fleet) -> None:
    environment = fleet.environment(compose.containers["service"])
    listed = subprocess.run(
        ["alarmcast", "admin", "machine", "list"], env=environment, capture_output=True, text=True, check=True
    )
    rows = [line.split()[1] for line in listed.stdout.splitlines() if "/" in line and "zone" not in line]
    assert rows == sorted(f"{one.site}/{one.machine}" for one in map(fleet.agent, compose.agents))


def test_preparing_enrols_every_machine_with_its_past(fleet: Fleet) -> None:
    assert fleet.said.count(" is enrolled; job ") == 3
    assert fleet.said.count(" 0 rows quarantined.") == 3


def test_preparing_twice_changes_nothing(compose: Compose, fleet: Fleet) -> None:
    before = fleet.files()
    assert fleet.prepare(compose.containers["prepare"]) == "The fleet is prepared already.\n"
    assert fleet.files() == before


def test_preparing_again_after_being_cut_off_loads_nothing_twice(
    compose: Compose, fleet: Fleet, tmp_path: Path
) -> None:
    cut = Fleet(tmp_path / "data", tmp_path / "edge.toml")
    copytree(fleet.data, cut.data)
    (cut.data / "fleet-enrolled").unlink()
    said = cut.prepare(compose.containers["prepare"])
    assert said.count(" is enrolled; job ") == said.count("0 events stored, ") == 3
    assert cut.config.read_text(encoding="utf-8") == fleet.config.read_text(encoding="utf-8")


@contextmanager
def running(command: list[str], environment: dict[str, str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program of ours until the end of the block."""
    process = subprocess.Popen([PROGRAMS / command[0], *command[1:]], env=environment, cwd=folder)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=20)


@dataclass(frozen=True)
class Api:
    """The service's API."""

    port: int
    data: Path

    def get(self, path: str, **query: str | int) -> Any:
        """Return an answer, or None while there is none."""
        url = f"http://127.0.0.1:{self.port}{path}?{urlencode(query)}"
        try:
            key = (self.data / "admin.token").read_text(encoding="ascii").strip()
            request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"})
            with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310 - our own address
                return json.load(answer)
        except (urllib.error.URLError, FileNotFoundError):
            return None

    def alarms(self, agent: edge_settings.Settings) -> list[tuple[datetime, int]]:
        """Return what is stored of a machine around the seam, in order of time."""
        path = f"/v1/machines/{agent.site}/{agent.machine}/alarms"
        page = self.get(path, limit=1000, since=BEFORE.isoformat(), until=NOW.isoformat())
        if page is None:
            return []
        assert page["next"] is None
        return sorted((datetime.fromisoformat(alarm["at"]), alarm["code"]) for alarm in page["alarms"])

    def open_jobs(self) -> list[str]:
        """Return the jobs that have not ended yet."""
        jobs = self.get("/v1/jobs")["jobs"]
        return [job["state"] for job in jobs if job["state"] in ("collecting", "queued", "running")]

    def wait_for(self, agent: edge_settings.Settings, count: int) -> None:
        wait_until(lambda: len(self.alarms(agent)) >= count, f"{count} alarms of {agent.site} are stored", 60)


def test_every_machine_goes_on_over_mqtt_where_its_history_ends_and_is_forecast(
    compose: Compose, fleet: Fleet, broker: DeployedBroker, tmp_path: Path
) -> None:
    api = Api(free_port(), fleet.data)
    at_broker = {"broker_host": "127.0.0.1", "broker_port": broker.port}
    with ExitStack() as stack:
        service = fleet.environment(compose.containers["service"], host="127.0.0.1", port=api.port, **at_broker)
        stack.enter_context(running(["alarmcast", "serve"], service, tmp_path))
        for container in compose.agents:
            agent = fleet.environment(container, spool_path=tmp_path / container.name, **at_broker)
            command = ["alarmcast-edge", "run", "--config", str(fleet.config)]
            stack.enter_context(running(command, agent, tmp_path))
        for one in map(fleet.agent, compose.agents):
            machine = personality(one.source_seed, one.source_index)
            raised = [(alarm.at, alarm.code) for alarm in alarms(machine, BEFORE, NOW)]
            assert raised[0][0] < SINCE < raised[-1][0], "both sides of the seam must hold alarms"
            api.wait_for(one, len(raised))
            assert api.alarms(one) == raised
        wait_until(lambda: api.get("/v1/forecasts"), "a first machine is learned", 120)
        wait_until(lambda: not api.open_jobs(), "all machines are learned", 180)
        forecasts = api.get("/v1/forecasts")["forecasts"]
        assert [one["status"] for one in forecasts] == ["ok"] * 3
        assert api.get("/readyz")
