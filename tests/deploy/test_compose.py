"""docker-compose.yml and its overlays say only things that the programs, the images and the broker understand."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from edge_agent import settings as edge_settings
from service.broker_access.edge_toml import AgentAccess, edge_toml
from service.broker_access.mosquitto_setup import SERVICE, Listener, configuration
from service.settings import PREFIX, Settings
from tests.conftest import require
from tests.deploy.compose import Compose, Container, read
from tests.deploy.conftest import OVERLAYS, REPOSITORY
from tests.deploy.dockerfile import Dockerfile
from tests.deploy.variables import unknown_variables
from wire.enums import ProcessRole
from wire.identity import MachineId

PROGRAMS = Path(sys.executable).parent
KEYS = {"build", "cap_add", "cap_drop", "command", "depends_on", "entrypoint", "environment", "healthcheck",
        "image", "network_mode", "ports", "read_only", "restart", "scale", "security_opt", "tmpfs", "user",
        "volumes"}  # fmt: skip
RUN_ONCE = {"keys", "prepare"}
PINNED = re.compile(r"[a-z/-]+:v?\d+(\.\d+)*(-[a-z]+)?")


def ours(compose: Compose) -> list[Container]:
    return [container for container in compose.containers.values() if container.target]


@pytest.fixture(scope="session")
def scaled() -> Compose:
    """The compose file with a process for each role."""
    files = [REPOSITORY / "deploy/compose" / name for name in OVERLAYS["scaled"]]
    return read(REPOSITORY / "docker-compose.yml", *files)


def issued(agent: Container) -> str:
    """Return what enrolment would write for the machine that a container is called after."""
    site, _, machine = agent.name.partition("-")
    access = AgentAccess("mosquitto", 8883, tls=True, ca="-----BEGIN CERTIFICATE-----")
    return edge_toml(MachineId(site, machine), access, username="name", password="word", time_zone="UTC")  # noqa: S106


def test_three_simulated_machines_a_broker_and_the_service_are_there(overlaid: Compose) -> None:
    assert len(overlaid.agents) == 3
    assert {"keys", "mosquitto", "prepare", "service"} < set(overlaid.containers)


def test_every_variable_is_a_setting_of_the_program_that_gets_it(overlaid: Compose) -> None:
    for container in ours(overlaid):
        assert unknown_variables(container.environment, agent=container.is_agent) == []


@pytest.mark.parametrize("target", ["edge", "service"])
def test_every_variable_of_an_image_is_a_setting(dockerfile: Dockerfile, target: str) -> None:
    variables = dockerfile.environment(target)
    assert any(name.startswith(PREFIX) for name in variables)
    assert unknown_variables(variables, agent=target == "edge") == []


def test_a_variable_that_is_no_setting_would_be_noticed() -> None:
    names = ["ALARMCAST_COLOUR", "ALARMCAST_HOST", "ALARMCAST_EDGE_SITE", "ALARMCAST_EDGE_COLOUR", "HOME"]
    assert unknown_variables(names, agent=False) == [
        "ALARMCAST_COLOUR",
        "ALARMCAST_EDGE_SITE",
        "ALARMCAST_EDGE_COLOUR",
    ]
    assert unknown_variables(names, agent=True) == ["ALARMCAST_COLOUR", "ALARMCAST_HOST", "ALARMCAST_EDGE_COLOUR"]
    assert unknown_variables(["ALARMCAST_BROKER_PASSWORD_FILE"], agent=False) == []
    assert unknown_variables(["ALARMCAST_HOST_FILE"], agent=False) == ["ALARMCAST_HOST_FILE"]


def test_no_secret_stands_in_a_file(overlaid: Compose) -> None:
    for container in overlaid.containers.values():
        names = [name for name in container.environment if re.search("PASSWORD|SECRET_|DATABASE_URL", name)]
        assert all(name.endswith("_FILE") for name in names)


def test_every_agent_has_the_settings_it_needs(compose: Compose, dockerfile: Dockerfile, tmp_path: Path) -> None:
    for agent in compose.agents:
        config = tmp_path / Path(agent.command(dockerfile)[-1]).name
        config.write_text(issued(agent), encoding="utf-8")
        loaded = edge_settings.load(config, {}, dockerfile.environment("edge") | agent.environment)
        assert agent.name == f"{loaded.site}-{loaded.machine}" == config.stem
        assert loaded.source_kind is edge_settings.SourceKind.SIMULATED


def test_no_two_agents_are_the_same_machine_or_share_a_spool(compose: Compose) -> None:
    indexes = {agent.environment["ALARMCAST_EDGE_SOURCE_INDEX"] for agent in compose.agents}
    spools = {source for agent in compose.agents for source, _, read_only in agent.mounts if not read_only}
    assert len({agent.name for agent in compose.agents}) == len(indexes) == len(spools) == 3


def test_every_command_is_one_that_the_programs_know(scaled: Compose, dockerfile: Dockerfile) -> None:
    for container in ours(scaled):
        program, *words = container.command(dockerfile)
        if program == "sh":  # the scripts are run for real in other tests
            continue
        commands = [word for word in words[:1] if re.fullmatch(r"[a-z]+", word)]
        usage = subprocess.run(
            [PROGRAMS / program, *commands, "--help"], capture_output=True, text=True, check=False
        )
        assert usage.returncode == 0, usage.stderr
        assert commands
        for option in (word for word in words if word.startswith("--")):
            assert option in usage.stdout


def test_every_role_is_somebody_s_and_they_find_the_same_database(scaled: Compose, dockerfile: Dockerfile) -> None:
    processes = [one for one in ours(scaled) if one.command(dockerfile)[1] == "serve"]
    assert sorted(one.command(dockerfile)[-1] for one in processes) == sorted(ProcessRole)
    places = {tuple(sorted(stays(one.environment).items())) for one in processes}
    assert len(places) == 1


def stays(environment: dict[str, str]) -> dict[str, str]:
    """Return where broker and database are, as a container is told."""
    return {name: value for name, value in environment.items() if "BROKER" in name or "DATABASE" in name}


def test_a_port_is_published_to_this_computer_only(overlaid: Compose) -> None:
    published = [port for container in overlaid.containers.values() for port in container.wishes.get("ports", [])]
    assert len(published) >= 2
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in published)


def test_the_published_ports_are_those_that_are_listened_on(compose: Compose, dockerfile: Dockerfile) -> None:
    broker, service = (compose.containers[name].wishes["ports"][0] for name in ("mosquitto", "service"))
    assert service.endswith(f":{Settings.model_fields['port'].default}")
    assert dockerfile.last("service", "EXPOSE").text == str(Settings.model_fields["port"].default)
    assert broker.endswith(f":{compose.containers['service'].environment['ALARMCAST_BROKER_PORT']}")


def test_the_broker_finds_its_configuration_where_it_is_written(compose: Compose) -> None:
    mosquitto, keys = compose.containers["mosquitto"], compose.containers["keys"]
    [(volume, seen, read_only)] = mosquitto.mounts
    assert not read_only, "the plugin and the broker keep their memory there"
    assert mosquitto.wishes["command"][-1] == f"{seen}/mosquitto.conf"
    script = (REPOSITORY / "deploy/compose/keys.sh").read_text(encoding="utf-8")
    assert f"${{BROKER_SEES:-{seen}}}" in script
    assert f"${{BROKER_USER:-{mosquitto.wishes['user'].partition(':')[0]}}}" in script
    [place] = [target for source, target, _ in keys.mounts if source == volume]
    assert f"${{BROKER:-{place}}}" in script


def test_the_service_finds_its_keys_where_they_are_put(overlaid: Compose) -> None:
    script = (REPOSITORY / "deploy/compose/keys.sh").read_text(encoding="utf-8")
    for name in {"prepare", "service", "ingest", "worker"} & set(overlaid.containers):
        container = overlaid.containers[name]
        [folder] = [target for source, target, _ in container.mounts if source == "service-keys"]
        files = [value for value in container.environment.values() if value.startswith("/")]
        assert files
        for file in files:
            assert Path(file).parent == Path(folder)
            assert f'"$service/{Path(file).name}"' in script or f'/{Path(file).name}"' in script
        assert container.environment["ALARMCAST_BROKER_USERNAME"] == SERVICE


def test_only_who_makes_keys_is_root_and_it_reaches_nobody(overlaid: Compose, dockerfile: Dockerfile) -> None:
    users = {name: one.wishes.get("user") or dockerfile.last(str(one.target), "USER").text
             for name, one in overlaid.containers.items()}  # fmt: skip
    assert [name for name, user in users.items() if user.startswith("0")] == ["keys"]
    assert overlaid.containers["keys"].wishes["network_mode"] == "none"
    assert [name for name, one in overlaid.containers.items() if "cap_add" in one.wishes] == ["keys"]
    for container in overlaid.containers.values():
        assert container.wishes["cap_drop"] == ["ALL"]
        assert container.wishes["security_opt"] == ["no-new-privileges:true"]


def test_nobody_but_who_makes_keys_has_the_authority(overlaid: Compose) -> None:
    holders = [
        one.name for one in overlaid.containers.values() for source, _, _ in one.mounts if source == "authority"
    ]
    assert holders == ["keys"]


def test_every_foreign_image_is_pinned(overlaid: Compose) -> None:
    foreign = [one.wishes["image"] for one in overlaid.containers.values() if not one.target]
    assert foreign
    assert all(PINNED.fullmatch(image) for image in foreign)


def test_every_volume_is_declared_and_every_mounted_file_is_there(overlaid: Compose) -> None:
    sources = {source for container in overlaid.containers.values() for source, _, _ in container.mounts}
    files = {source for source in sources if source.startswith("./")}
    assert sources - files == overlaid.volumes
    assert all((REPOSITORY / file).exists() for file in files)


def test_mounted_files_cannot_be_written_from_inside(overlaid: Compose) -> None:
    for container in overlaid.containers.values():
        assert all(read_only for source, _, read_only in container.mounts if source.startswith("./"))


def test_state_lies_in_volumes_and_all_else_is_read_only(overlaid: Compose, dockerfile: Dockerfile) -> None:
    for container in overlaid.containers.values():
        assert container.wishes["read_only"] is True
        assert container.wishes["tmpfs"][0] == "/tmp"  # noqa: S108 - a path inside the container
    for container in ours(overlaid):
        volume = dockerfile.last(str(container.target), "VOLUME").text
        assert container.name == "keys" or [target for _, target, _ in container.mounts if target == volume]


def test_every_container_comes_back_but_those_that_prepare_run_once(overlaid: Compose) -> None:
    policies = {name: container.wishes["restart"] for name, container in overlaid.containers.items()}
    assert {policies.pop(name) for name in RUN_ONCE} == {"no"}
    assert set(policies.values()) == {"unless-stopped"}


def test_everyone_waits_for_keys_then_for_the_broker_then_for_their_past(overlaid: Compose) -> None:
    waits = {name: one.wishes.get("depends_on", {}) for name, one in overlaid.containers.items()}
    assert waits["mosquitto"] == {"keys": {"condition": "service_completed_successfully"}}
    assert waits["prepare"]["mosquitto"] == {"condition": "service_started"}
    for name in {"service", "ingest", "worker", *(agent.name for agent in overlaid.agents)} & set(waits):
        assert waits[name]["prepare"] == {"condition": "service_completed_successfully"}


def test_every_key_is_one_that_compose_knows(overlaid: Compose) -> None:
    for container in overlaid.containers.values():
        assert set(container.wishes) <= KEYS
        assert set(container.wishes.get("depends_on", {})) <= set(overlaid.containers)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_compose_itself_accepts_the_files_where_it_is_installed(overlay: str) -> None:
    asked = shutil.which("docker") and subprocess.run(
        ["docker", "compose", "version"], check=False, capture_output=True
    )
    if asked and asked.returncode == 0:
        files = ["docker-compose.yml", *(f"deploy/compose/{name}" for name in OVERLAYS[overlay])]
        named = [word for file in files for word in ("--file", str(REPOSITORY / file))]
        checked = subprocess.run(["docker", "compose", *named, "config", "--quiet"], check=False)
        assert checked.returncode == 0


def test_shellcheck_finds_nothing_to_say_about_a_script() -> None:
    scripts = [*(REPOSITORY / "scripts").iterdir(), *(REPOSITORY / "deploy").rglob("*.sh")]
    checked = subprocess.run([PROGRAMS / "shellcheck", *scripts], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout) == (0, "")


def test_the_open_broker_and_the_guarded_one_differ_in_who_comes_in_and_in_nothing_else() -> None:
    plain = (REPOSITORY / "deploy/mosquitto/mosquitto.conf").read_text(encoding="utf-8")
    guarded = configuration(Listener(1883, "127.0.0.1"), data=Path("/var/lib/mosquitto"), plugin=Path("/plugin"))
    lines = [{line for line in text.splitlines() if line and line[0] != "#"} for text in (plain, guarded)]
    assert lines[0] - lines[1] == {"allow_anonymous true"}
    assert lines[1] - lines[0] == {
        "allow_anonymous false",
        "plugin /plugin",
        "plugin_opt_config_file /var/lib/mosquitto/dynamic-security.json",
    }


@pytest.mark.parametrize("overlays", OVERLAYS.values(), ids=OVERLAYS)
def test_compose_itself_reads_the_files_as_we_do(overlays: tuple[str, ...]) -> None:
    """Compose needs no engine to say what it would run."""
    files = [REPOSITORY / "docker-compose.yml", *(REPOSITORY / "deploy/compose" / name for name in overlays)]
    told = subprocess.run(
        [*compose_program(), *(word for file in files for word in ("--file", str(file))), "config"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    resolved = yaml.safe_load(told.stdout)["services"]
    containers = read(*files).containers
    assert resolved.keys() == containers.keys()
    for name, container in containers.items():
        assert dict(resolved[name].get("environment") or {}) == container.environment


def compose_program() -> list[str]:
    """Return the Compose that is here: the plugin of Docker's own client, or the program of old."""
    plugin = ["docker", "compose"]
    if shutil.which(plugin[0]):
        asked = subprocess.run([*plugin, "version"], capture_output=True, check=False)
        if asked.returncode == 0:
            return plugin
    require(shutil.which("docker-compose"), "docker compose")
    return ["docker-compose"]
