"""The Dockerfile's two targets, built step by step in clean folders and environments, and then used."""

import re
import subprocess
from pathlib import Path
from signal import SIGTERM

import pytest

from edge_agent import __version__
from tests.conftest import free_port, wait_until
from tests.deploy.conftest import DeployedBroker
from tests.deploy.dockerfile import Dockerfile
from tests.deploy.image import Image

TARGETS = ["edge", "service"]
# What the service needs and an agent must never bring along.
HEAVY = ["alembic", "amqtt", "fastapi", "httpx", "nicegui", "numpy", "prometheus-client", "psycopg",
         "pydantic-settings", "rich", "safetensors", "sqlalchemy", "starlette", "structlog", "torch", "typer",
         "uvicorn"]  # fmt: skip
EDGE_LIMIT = 25_000_000  # bytes on disk, compiled modules included; pydantic is most of it

pytestmark = pytest.mark.timeout(600)  # the service's wheels are large


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_runs_as_a_user_without_privileges_and_keeps_its_state_in_a_volume(
    dockerfile: Dockerfile, target: str
) -> None:
    [made] = [one.text for one in dockerfile.lineage(target) if "useradd" in one.text]
    user, group = dockerfile.last(target, "USER").text.split(":")
    assert int(user) > 0
    assert f"useradd --uid {user} --gid {group} " in made
    volume = dockerfile.last(target, "VOLUME").text
    assert f"install --directory --owner alarmcast --group alarmcast {volume} " in made
    assert any(value.startswith(volume) for value in dockerfile.environment(target).values())


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_starts_its_program_without_a_shell_between(dockerfile: Dockerfile, target: str) -> None:
    assert dockerfile.last(target, "ENTRYPOINT").is_exec_form
    assert dockerfile.last(target, "CMD").is_exec_form


@pytest.mark.parametrize("target", TARGETS)
def test_only_the_user_is_left_out_when_a_target_is_built_here(
    request: pytest.FixtureRequest, target: str
) -> None:
    image: Image = request.getfixturevalue(target)
    [left_out] = image.left_out
    assert re.findall(r"(?:^|&& )(\w+)", left_out) == ["groupadd", "useradd", "install"]


@pytest.mark.parametrize("target", TARGETS)
def test_the_programs_of_a_target_say_their_version_and_their_commands(
    request: pytest.FixtureRequest, target: str
) -> None:
    image: Image = request.getfixturevalue(target)
    version, usage = image.entry("--version"), image.entry("--help")
    assert (version.returncode, version.stdout.strip()) == (0, __version__), version.stderr
    assert usage.returncode == 0, usage.stderr
    assert image.dockerfile.last(target, "CMD").words()[0] in usage.stdout


def test_an_edge_installation_brings_nothing_of_the_service(edge: Image) -> None:
    installed = edge.installed()
    assert {"alarmcast", "paho-mqtt", "pydantic"} <= installed
    assert not installed.intersection(HEAVY)
    find = "import importlib.util as u, sys; sys.exit(any(u.find_spec(name) for name in sys.argv[1:]))"
    assert edge.run(["python", "-c", find, "torch", "sqlalchemy", "fastapi", "nicegui", "numpy"]).returncode == 0


def test_an_edge_installation_is_small(edge: Image) -> None:
    assert edge.size < EDGE_LIMIT, f"the edge target adds {edge.size / 1e6:.1f} MB to Python"


def test_an_edge_installation_says_in_one_sentence_that_it_has_no_service(edge: Image) -> None:
    done = edge.run(["alarmcast", "serve"])
    assert done.returncode == 1
    assert done.stderr.startswith("alarmcast: the service is not installed here")
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_edge_target_simulates_a_machine_with_what_it_has(edge: Image, tmp_path: Path) -> None:
    log = tmp_path / "alarms.csv"
    done = edge.entry("simulate", "--days", "2", "--machines", "1", "--out", str(log))
    assert done.returncode == 0, done.stderr
    assert log.read_text(encoding="utf-8").startswith("timestamp,alarm,serial\n")


def test_the_edge_target_speaks_to_the_deployed_broker_until_it_is_asked_to_stop(
    edge: Image, broker: DeployedBroker
) -> None:
    settings = {
        "ALARMCAST_EDGE_SITE": "padova",
        "ALARMCAST_EDGE_MACHINE": "filler-1",
        "ALARMCAST_EDGE_SOURCE_KIND": "simulated",
        "ALARMCAST_EDGE_BROKER_PORT": str(broker.port),
    }
    entry = edge.dockerfile.last("edge", "ENTRYPOINT").words()
    agent = subprocess.Popen(edge.command([*entry, "run"]), env=edge.environment() | settings, cwd=edge.root)
    try:
        wait_until(
            lambda: "as alarmcast-edge/padova/filler-1 (p5" in broker.log.read_text(encoding="utf-8"),
            "the agent has connected over MQTT 5",
        )
    finally:
        agent.send_signal(SIGTERM)
        code = agent.wait(timeout=20)
    assert code == 0
    assert Path(edge.environment()["ALARMCAST_EDGE_SPOOL_PATH"]).is_file()


def test_the_service_target_can_serve_and_train(service: Image) -> None:
    assert {"alarmcast", "torch", "sqlalchemy", "fastapi", "numpy", "uvicorn"} <= service.installed()
    assert not [name for name in service.installed() if name.startswith(("nvidia-", "triton"))], "no CPU build"
    train = "import torch; torch.nn.Linear(2, 1)(torch.zeros(1, 2)).sum().backward()"
    assert service.run(["python", "-c", train]).returncode == 0


def test_the_service_target_is_healthy_exactly_while_it_serves(service: Image) -> None:
    entry, command = (service.dockerfile.last("service", keyword).words() for keyword in ("ENTRYPOINT", "CMD"))
    check = service.dockerfile.last("service", "HEALTHCHECK").nested().words()
    settings = {"ALARMCAST_PORT": str(free_port()), "ALARMCAST_BROKER_PORT": str(free_port())}

    def is_healthy() -> bool:
        return service.run(check, **settings).returncode == 0

    assert not is_healthy()
    process = subprocess.Popen(
        service.command([*entry, *command]), env=service.environment() | settings, cwd=service.root
    )
    try:
        wait_until(is_healthy, "the health check passes")
    finally:
        process.send_signal(SIGTERM)
        code = process.wait(timeout=20)
    assert code == 0
    assert not is_healthy()
    assert list(Path(service.environment()["ALARMCAST_DATA_DIR"]).glob("*.sqlite3"))
