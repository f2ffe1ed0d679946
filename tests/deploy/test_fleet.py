"""What ``docker compose up`` does, done without Docker: the past prepared, then broker, service and agents."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from edge_agent import settings as edge_settings
from edge_agent.simulator import alarms, machine_profile
from tests.conftest import free_port, require, wait_until
from tests.deploy.compose import Compose, Container
from tests.deploy.conftest import REPOSITORY, DeployedBroker
from tests.deploy.keys import Keys
from tests.deploy.sandbox import can_start_python, confined, hand_over

PROGRAMS = Path(sys.executable).parent
# A working week's middle, so that every machine has alarms on both sides of the seam, whenever the test is run.
SINCE = datetime(2026, 11, 11, 12, tzinfo=UTC)
BEFORE, NOW = SINCE - timedelta(days=1), SINCE + timedelta(days=1)
PLANT_CLOCK = {"CLOCK_WALL_ORIGIN": datetime.now(UTC).isoformat(), "CLOCK_PLANT_ORIGIN": NOW.isoformat()}
# Enough history to learn from.
QUICK = {"FLEET_SINCE": SINCE.isoformat(), "HISTORY_DAYS": "40"}


@dataclass(frozen=True)
class Fleet:
    """The volumes of all containers, as folders, and the broker beside them."""

    keys: Keys
    broker: DeployedBroker
    data: Path
    tmp: Path

    def environment(self, container: Container, **moved: object) -> dict[str, str]:
        """Return the variables of a container, with our folders, our clock and what else is moved."""
        prefix = "ALARMCAST_EDGE_" if container.is_agent else "ALARMCAST_"
        places = {} if container.is_agent else {
            "DATA_DIR": self.data,
            "BROKER_HOST": "127.0.0.1",
            "BROKER_PORT": self.broker.port,
            "BROKER_TLS_CA": self.keys.volume("service") / "ca.pem",
            "BROKER_PASSWORD_FILE": self.keys.volume("service") / "broker-password",
        }  # fmt: skip
        ours = {f"{prefix}{name}".upper(): str(value) for name, value in (PLANT_CLOCK | places | moved).items()}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ALARMCAST_")}
        here = {"PATH": f"{PROGRAMS}:{os.environ['PATH']}", "COLUMNS": "200", "TMPDIR": str(self.tmp)}
        return inherited | here | container.environment | ours

    def held(self, command: Sequence[str | Path], *more: Path) -> list[str]:
        """Return a command as its container would hold it, where that can be done."""
        plain = [str(word) for word in command]
        return confined(plain, self.data, self.tmp, *more) if can_start_python() else plain

    def prepare(self, container: Container) -> str:
        """Run prepare.sh as its container would, and return what it said."""
        environment = self.environment(container) | QUICK | {"FLEET": str(self.tomls)}
        script = REPOSITORY / "deploy/compose/prepare.sh"
        done = subprocess.run(
            self.held(["sh", script], self.tomls), env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def tomls(self) -> Path:
        return self.keys.volume("fleet")

    def files(self) -> dict[str, str]:
        """Return every file and a digest of what it holds."""
        found = [file for folder in (self.data, self.tomls) for file in folder.rglob("*") if file.is_file()]
        return {str(file): sha256(file.read_bytes()).hexdigest() for file in found}

    def agent(self, agent: Container) -> edge_settings.Settings:
        return edge_settings.load(self.tomls / f"{agent.name}.toml", {}, agent.environment)


@dataclass(frozen=True)
class Prepared:
    """A fleet, and what preparing it said."""

    fleet: Fleet
    said: str


@pytest.fixture(scope="module")
def prepared(compose: Compose, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    require(Path("/usr/sbin/mosquitto").exists(), "mosquitto")
    folder = tmp_path_factory.mktemp("fleet")
    keys = Keys(folder / "keys")
    assert keys.make() == 0
    broker = keys.broker()
    fleet = Fleet(keys, broker, hand_over(folder / "data"), hand_over(folder / "tmp"))
    try:
        yield Prepared(fleet, fleet.prepare(compose.containers["prepare"]))
    finally:
        broker.stop()


@pytest.fixture(scope="module")
def fleet(prepared: Prepared) -> Fleet:
    return prepared.fleet


def test_the_machines_that_get_a_past_are_those_that_have_an_agent(compose: Compose, fleet: Fleet) -> None:
    environment = fleet.environment(compose.containers["service"])
    listed = subprocess.run(
        fleet.held([PROGRAMS / "alarmcast", "admin", "machine", "list"]),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split()[1] for line in listed.stdout.splitlines() if "/" in line and "zone" not in line]
    assert rows == sorted(f"{one.site}/{one.machine}" for one in map(fleet.agent, compose.agents))


def test_preparing_enrols_every_machine_with_its_past(prepared: Prepared) -> None:
    assert prepared.said.count(" is enrolled; job ") == 3
    assert prepared.said.count(" 0 rows quarantined.") == 3


def test_every_machine_has_credentials_of_its_own_that_only_its_agent_can_read(
    compose: Compose, fleet: Fleet
) -> None:
    agents = [fleet.agent(agent) for agent in compose.agents]
    assert (
        len({agent.broker_username for agent in agents}) == len({agent.broker_password for agent in agents}) == 3
    )
    assert all(agent.broker_tls and agent.broker_tls_ca_pem for agent in agents)
    assert {file.stat().st_mode & 0o777 for file in fleet.tomls.iterdir()} == {0o600}


def test_preparing_twice_changes_nothing(compose: Compose, fleet: Fleet) -> None:
    before = fleet.files()
    assert fleet.prepare(compose.containers["prepare"]) == "The fleet is prepared already.\n"
    assert fleet.files() == before


def test_preparing_again_after_being_cut_off_loads_nothing_twice_and_issues_what_was_lost(
    compose: Compose, fleet: Fleet
) -> None:
    kept = {file.name: file.read_text(encoding="utf-8") for file in fleet.tomls.iterdir()}
    (fleet.data / "fleet-enrolled").unlink()
    (fleet.tomls / "graz-filler-1.toml").unlink()
    said = fleet.prepare(compose.containers["prepare"])
    assert said.count(" is enrolled; job ") == said.count("0 events stored, ") == 3
    now = {file.name: file.read_text(encoding="utf-8") for file in fleet.tomls.iterdir()}
    assert [name for name in kept if now[name] != kept[name]] == ["graz-filler-1.toml"]


@contextmanager
def running(command: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program of ours until the end of the block."""
    process = subprocess.Popen(command, env=environment, cwd="/")
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
        token = self.data / "admin.token"  # what an admin on the same computer shows
        shown = {"Authorization": f"Bearer {token.read_text(encoding='ascii').strip()}"} if token.exists() else {}
        try:
            request = urllib.request.Request(url, headers=shown)
            with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
                return json.load(answer)
        except urllib.error.URLError:
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
    compose: Compose, fleet: Fleet, tmp_path: Path
) -> None:
    api = Api(free_port(), fleet.data)
    with ExitStack() as stack:
        # Not where the container listens: everybody could reach that here.
        service = fleet.environment(compose.containers["service"], host="127.0.0.1", port=api.port)
        stack.enter_context(running(fleet.held([PROGRAMS / "alarmcast", "serve"]), service))
        for container in compose.agents:
            spool = hand_over(tmp_path / container.name)
            agent = fleet.environment(container, spool_path=spool / "spool.sqlite3")
            config = fleet.tomls / f"{container.name}.toml"
            command = [str(PROGRAMS / "alarmcast-edge"), "run", "--config", str(config)]
            stack.enter_context(running(fleet.held(command, spool), agent))
        for one in map(fleet.agent, compose.agents):
            machine = machine_profile(one.source_seed, one.source_index)
            raised = [(alarm.at, alarm.code) for alarm in alarms(machine, BEFORE, NOW)]
            assert raised[0][0] < SINCE < raised[-1][0], "both sides of the seam must hold alarms"
            api.wait_for(one, len(raised))
            assert api.alarms(one) == raised
        wait_until(lambda: api.get("/v1/forecasts"), "a first machine is learned", 120)
        wait_until(lambda: not api.open_jobs(), "all machines are learned", 180)
        forecasts = api.get("/v1/forecasts")["forecasts"]
        assert [one["status"] for one in forecasts] == ["ok"] * 3
        assert api.get("/readyz")
