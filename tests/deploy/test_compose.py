"""docker-compose.yml says only things that the programs, the images and the broker understand."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from edge_agent import settings as edge_settings
from service.settings import PREFIX, Settings
from tests.deploy.compose import Compose, Container
from tests.deploy.conftest import REPOSITORY
from tests.deploy.dockerfile import Dockerfile

PROGRAMS = Path(sys.executable).parent
KEYS = {"build", "cap_drop", "command", "depends_on", "entrypoint", "environment", "healthcheck", "image", "ports",
        "read_only", "restart", "security_opt", "tmpfs", "user", "volumes"}  # fmt: skip


def stray(names: Iterable[str], *, agent: bool) -> list[str]:
    """Return the variables of ours that are no setting of the program that would read them."""
    prefix = edge_settings.ENV_PREFIX if agent else PREFIX
    fields = edge_settings.Settings.model_fields if agent else Settings.model_fields
    known = {prefix + name.upper() for name in fields}
    return [name for name in names if name.startswith(PREFIX) and name not in known]


def ours(compose: Compose) -> list[Container]:
    return [container for container in compose.containers.values() if container.target]


def test_three_simulated_machines_a_broker_and_the_service_are_there(compose: Compose) -> None:
    assert len(compose.agents) == 3
    assert {"mosquitto", "prepare", "service"} < set(compose.containers)


def test_every_variable_is_a_setting_of_the_program_that_gets_it(compose: Compose) -> None:
    for container in ours(compose):
        assert stray(container.environment, agent=container.is_agent) == []


@pytest.mark.parametrize("target", ["edge", "service"])
def test_every_variable_of_an_image_is_a_setting(dockerfile: Dockerfile, target: str) -> None:
    variables = dockerfile.environment(target)
    assert any(name.startswith(PREFIX) for name in variables)
    assert stray(variables, agent=target == "edge") == []


def test_a_variable_that_is_no_setting_would_be_noticed() -> None:
    names = ["ALARMCAST_COLOUR", "ALARMCAST_HOST", "ALARMCAST_EDGE_SITE", "ALARMCAST_EDGE_COLOUR", "HOME"]
    assert stray(names, agent=False) == ["ALARMCAST_COLOUR", "ALARMCAST_EDGE_SITE", "ALARMCAST_EDGE_COLOUR"]
    assert stray(names, agent=True) == ["ALARMCAST_COLOUR", "ALARMCAST_HOST", "ALARMCAST_EDGE_COLOUR"]


def test_every_agent_has_the_settings_it_needs(compose: Compose, dockerfile: Dockerfile, tmp_path: Path) -> None:
    config = tmp_path / "edge.toml"
    config.write_text('[source]\nsince = "2026-11-16T00:00:00+00:00"\n', encoding="utf-8")
    for agent in compose.agents:
        loaded = edge_settings.load(config, {}, dockerfile.environment("edge") | agent.environment)
        assert agent.name == f"{loaded.site}-{loaded.machine}"


def test_no_two_agents_are_the_same_machine_or_share_a_spool(compose: Compose) -> None:
    indexes = {agent.environment["ALARMCAST_EDGE_SOURCE_INDEX"] for agent in compose.agents}
    spools = {source for agent in compose.agents for source, _, read_only in agent.mounts if not read_only}
    assert len({agent.name for agent in compose.agents}) == len(indexes) == len(spools) == 3


def test_every_command_is_one_that_the_programs_know(compose: Compose, dockerfile: Dockerfile) -> None:
    for container in ours(compose):
        program, *words = container.command(dockerfile)
        if program == "sh":  # prepare.sh is run for real in another test
            continue
        commands = [word for word in words if re.fullmatch(r"[a-z]+", word)]
        usage = subprocess.run(
            [PROGRAMS / program, *commands, "--help"], capture_output=True, text=True, check=False
        )
        assert usage.returncode == 0, usage.stderr
        assert commands
        for option in (word for word in words if word.startswith("--")):
            assert option in usage.stdout


def test_a_port_is_published_to_this_computer_only(compose: Compose) -> None:
    published = [port for container in compose.containers.values() for port in container.wishes.get("ports", [])]
    assert len(published) == 2
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in published)


def test_the_published_ports_are_those_that_are_listened_on(compose: Compose, dockerfile: Dockerfile) -> None:
    broker, service = (compose.containers[name].wishes["ports"][0] for name in ("mosquitto", "service"))
    assert service.endswith(f":{Settings.model_fields['port'].default}")
    assert dockerfile.last("service", "EXPOSE").text == str(Settings.model_fields["port"].default)
    assert broker.endswith(f":{Settings.model_fields['broker_port'].default}")
    assert broker.endswith(f":{edge_settings.Settings.model_fields['broker_port'].default}")
    config = (REPOSITORY / "deploy/mosquitto/mosquitto.conf").read_text(encoding="utf-8")
    assert f"\nlistener {broker.rpartition(':')[2]}\n" in config


def test_every_volume_is_declared_and_every_mounted_file_is_there(compose: Compose) -> None:
    sources = {source for container in compose.containers.values() for source, _, _ in container.mounts}
    files = {source for source in sources if source.startswith("./")}
    assert sources - files == compose.volumes
    assert all((REPOSITORY / file).is_file() for file in files)


def test_mounted_files_cannot_be_written_from_inside(compose: Compose) -> None:
    for container in compose.containers.values():
        assert all(read_only for source, _, read_only in container.mounts if source.startswith("./"))


def test_state_lies_in_volumes_and_all_else_is_read_only(compose: Compose, dockerfile: Dockerfile) -> None:
    for container in compose.containers.values():
        assert container.wishes["read_only"] is True
        assert container.wishes["tmpfs"] == ["/tmp"]  # noqa: S108 - a path inside the container
    for container in ours(compose):
        volume = dockerfile.last(str(container.target), "VOLUME").text
        assert [target for _, target, _ in container.mounts if target == volume]


def test_every_container_comes_back_but_the_one_that_prepares_runs_once(compose: Compose) -> None:
    policies = {name: container.wishes["restart"] for name, container in compose.containers.items()}
    assert policies.pop("prepare") == "no"
    assert set(policies.values()) == {"unless-stopped"}


def test_service_and_agents_wait_for_the_broker_and_for_their_past(compose: Compose) -> None:
    for container in [compose.containers["service"], *compose.agents]:
        assert container.wishes["depends_on"] == {
            "mosquitto": {"condition": "service_started"},
            "prepare": {"condition": "service_completed_successfully"},
        }


def test_every_key_is_one_that_compose_knows(compose: Compose) -> None:
    for container in compose.containers.values():
        assert set(container.wishes) <= KEYS
        assert set(container.wishes.get("depends_on", {})) <= set(compose.containers)


def test_compose_itself_accepts_the_file_where_it_is_installed() -> None:
    asked = shutil.which("docker") and subprocess.run(["docker", "compose", "version"], check=False)
    if asked and asked.returncode == 0:
        file = REPOSITORY / "docker-compose.yml"
        checked = subprocess.run(["docker", "compose", "--file", file, "config", "--quiet"], check=False)
        assert checked.returncode == 0
