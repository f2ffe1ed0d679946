"""The whole arrow in front of a guarded broker: enrolled, let in, stored; revoked, rotated; and over TLS."""

import ssl
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from alarmcast import Client
from service.broker_access.certificates import Authority
from tests.conftest import require, wait_until
from tests.support.commands import alarmcast, is_one_sentence
from tests.support.secured_broker import GuardedMosquitto, guarded_in, has_plugin, trying
from tests.system.conftest import Plant, Process, write_alarms
from wire.enums import CredentialState

FILLER = "plant/filler-1"
NAME = f"alarmcast-edge/{FILLER}"


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    folder = tmp_path / "tls"
    Authority(folder, datetime.now(UTC)).create(hosts=["127.0.0.1", "localhost"], clients=["service", "filler"])
    return folder


@pytest.fixture(params=["plain", "TLS with client certificates"])
def guarded(request: pytest.FixtureRequest, tmp_path: Path, certificates: Path) -> Iterator[GuardedMosquitto]:
    require(has_plugin(), "mosquitto with its dynamic-security plugin")
    tls = certificates if request.param != "plain" else None
    broker = guarded_in(tmp_path / "guarded", tls=tls)
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
def plant(tmp_path: Path, guarded: GuardedMosquitto) -> Iterator[Plant]:
    plant = Plant(tmp_path, guarded, environment=guarded.environment)
    plant.start_service()
    wait_until(plant.is_ready, "the service is ready")
    yield plant
    for process in reversed(plant.processes):
        if process.running is not None:
            process.running.kill()
            process.running.wait()


def agent_from(plant: Plant, edge_toml: Path, log: Path) -> Process:
    """Return the agent of an edge.toml as the admin got it, with its paths corrected and its certificate named."""
    flags: dict[str, object] = {"source-path": log, "spool-path": plant.spool(FILLER)}
    tls = plant.broker.tls if isinstance(plant.broker, GuardedMosquitto) else None
    if tls:
        flags |= {"broker-tls-cert": tls / "client-filler.pem", "broker-tls-key": tls / "client-filler.key"}
    words = [str(part) for name, value in flags.items() for part in (f"--{name}", value)]
    command = [sys.executable, "-m", "edge_agent", "run", "--config", str(edge_toml), *words]
    process = Process(command, plant.folder / "agent.log")
    plant.processes.append(process)
    return process


def enrol(plant: Plant, file: Path) -> None:
    done = plant.admin("enrol", FILLER, "--edge-toml", str(file))
    assert done.returncode == 0, done.stderr
    assert file.stat().st_mode & 0o777 == 0o600
    assert str(file) in done.stdout


def test_from_enrolment_to_a_stored_alarm_and_out_again(plant: Plant, tmp_path: Path) -> None:
    file, log = tmp_path / "edge.toml", tmp_path / "alarms.jsonl"
    enrol(plant, file)
    write_alarms(log, 0, 20)
    agent = agent_from(plant, file, log)
    agent.start()
    wait_until(lambda: len(plant.stored(FILLER)) == 20, "its alarms are stored")
    wait_until(lambda: plant.spooled(FILLER) == 0, "they are acked, and leave the spool")
    wait_until(lambda: _online(plant), "its state is heard")

    # Revoked while live: thrown out, nothing more is taken, nothing is lost.
    assert plant.api.credentials.revoke(FILLER, reason="stolen").state is CredentialState.REVOKED
    wait_until(lambda: "lost the broker" in agent.words(), "the agent is thrown out")
    wait_until(lambda: not _online(plant), "the service knows that it is gone")
    write_alarms(log, 20, 5)
    wait_until(lambda: plant.spooled(FILLER) == 5, "what comes now waits at the machine")
    wait_until(lambda: "refuses the connection" in agent.words(), "it is not let in again")
    assert len(plant.stored(FILLER)) == 20

    # New credentials, the same identity: everything arrives.
    agent.stop()
    again = tmp_path / "again.toml"
    done = plant.admin("machine", "rotate", FILLER, "--edge-toml", str(again))
    assert done.returncode == 0, done.stderr
    agent_from(plant, again, log).start()
    wait_until(lambda: len(plant.stored(FILLER)) == 25, "what had waited is stored")
    assert plant.api.credentials.get(FILLER).generation == 2
    assert plant.api.health.status().warnings == {}


def _online(plant: Plant) -> bool:
    agent = plant.api.machines.get(FILLER).agent
    return agent is not None and agent.online


def test_no_secret_reaches_a_log(plant: Plant, guarded: GuardedMosquitto, tmp_path: Path) -> None:
    issued = plant.api.enrolment.enrol(FILLER).credentials
    assert issued
    rotated = plant.api.credentials.rotate(FILLER)
    plant.api.credentials.revoke(FILLER, reason="over")
    plant.service.stop()
    words = plant.service.words() + (guarded.folder / "mosquitto.log").read_text()
    for secret in (issued.password, rotated.password, guarded.password(), guarded.password("admin")):
        assert secret not in words
    assert plant.data.is_relative_to(tmp_path)
    for secret in (issued.password, rotated.password):
        assert not [f for f in plant.data.rglob("*") if f.is_file() and secret.encode() in f.read_bytes()]


@pytest.mark.parametrize("guarded", ["plain"], indirect=True)
def test_an_edge_toml_that_is_there_is_not_overwritten_and_costs_no_password(plant: Plant, tmp_path: Path) -> None:
    file = tmp_path / "edge.toml"
    file.write_text("mine")
    is_one_sentence(plant.admin("enrol", FILLER, "--edge-toml", str(file)), "not overwritten")
    assert plant.api.machines.list().machines == []
    file.unlink()
    enrol(plant, file)
    done = plant.admin("enrol", FILLER, "--edge-toml", str(tmp_path / "more.toml"))
    assert done.returncode == 0
    assert "holds some already" in done.stdout
    assert not (tmp_path / "more.toml").exists()
    shown = plant.admin("machine", "rotate", FILLER)
    assert 'password = "' in shown.stdout


@pytest.mark.parametrize("guarded", ["plain"], indirect=True)
def test_without_a_service_the_command_itself_issues_credentials(
    guarded: GuardedMosquitto, tmp_path: Path
) -> None:
    told = guarded.environment | {"ALARMCAST_BROKER_PORT": str(guarded.port)}
    file = tmp_path / "edge.toml"
    options = ("--edge-toml", file, "--data-dir", tmp_path / "data")
    done = alarmcast("admin", "enrol", FILLER, *options, **told)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in file.read_text().splitlines() if line.startswith("password")]
    with trying(guarded, NAME, line.split('"')[1]) as agent:
        assert agent.is_in


def test_an_open_broker_keeps_the_service_from_listening_beyond_loopback(tmp_path: Path) -> None:
    everywhere = ("--host", "0.0.0.0", "--port", 0)  # noqa: S104
    off = {"ALARMCAST_BROKER_DYNAMIC_SECURITY": "off", "ALARMCAST_ALLOW_PLAIN_HTTP": "true"}
    done = alarmcast("serve", *everywhere, "--data-dir", tmp_path, **off)
    is_one_sentence(done, "Refusing to listen on 0.0.0.0", "ALARMCAST_ALLOW_OPEN_BROKER=true")


@pytest.mark.parametrize("guarded", ["plain"], indirect=True)
def test_the_api_speaks_tls_and_the_command_line_finds_it(plant: Plant, certificates: Path) -> None:
    plant.service.stop()
    pair = {"ALARMCAST_TLS_CERT": certificates / "api.pem", "ALARMCAST_TLS_KEY": certificates / "api.key"}
    plant.service.environment |= {name: str(value) for name, value in pair.items()}
    plant.service.start()
    wait_until(plant.key_file.exists, "the service has left its key")
    trusting = ssl.create_default_context(cafile=certificates / "ca.pem")
    address = f"https://127.0.0.1:{plant.port}"
    with Client(address, key=plant.key, transport=httpx.HTTPTransport(verify=trusting)) as client:
        wait_until(lambda: _lives(client), "the API answers over TLS")
        done = plant.admin("machine", "list")
        assert done.returncode == 0, done.stderr
        client.enrolment.enrol(FILLER)
        done = plant.admin("machine", "revoke", FILLER, "--reason", "over")
        assert done.returncode == 0, done.stderr
        assert client.credentials.get(FILLER).state is CredentialState.REVOKED
    with Client(address) as stranger, pytest.raises(Exception, match="CERTIFICATE_VERIFY_FAILED"):
        stranger.health.live()


def _lives(client: Client) -> bool:
    try:
        return client.health.live().status == "alive"
    except Exception:  # noqa: BLE001 - not yet, for whatever reason
        return False


def test_a_broker_is_there_in_two_commands(tmp_path: Path) -> None:
    require(has_plugin(), "mosquitto with its dynamic-security plugin")
    folder = tmp_path / "broker"
    made = alarmcast("admin", "broker-init", folder, "--address", "127.0.0.1", "--port", 18830)
    assert made.returncode == 0, made.stderr
    told = dict(line.split(": ", 1) for line in made.stdout.splitlines()[:1])
    assert told == {"Start the broker": f"mosquitto -c {folder}/mosquitto.conf"}
    assert {file.name for file in folder.iterdir()} == {
        "mosquitto.conf",
        "data",
        "admin-password",
        "service-password",
        "alarmcast.env",
    }
    assert (folder / "data/dynamic-security.json").stat().st_mode & 0o777 == 0o600
    is_one_sentence(alarmcast("admin", "broker-init", folder), "not overwritten")
    is_one_sentence(alarmcast("admin", "broker-init", tmp_path / "x", "--client-certificates"), "--tls")


def test_a_damaged_memory_is_mended_in_one_command(tmp_path: Path) -> None:
    folder = tmp_path / "broker"
    assert alarmcast("admin", "broker-init", folder).returncode == 0
    memory = folder / "data/dynamic-security.json"
    is_one_sentence(alarmcast("admin", "broker-repair", folder), "is valid and is not changed")
    is_one_sentence(alarmcast("admin", "broker-repair", tmp_path / "x"), "broker-init")
    memory.write_bytes(b"")
    made = alarmcast("admin", "broker-repair", folder)
    assert made.returncode == 0, made.stderr
    assert f"The damaged file is kept as {memory}.damaged-" in made.stdout
    assert "alarmcast admin machine rotate" in made.stdout
