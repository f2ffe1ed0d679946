"""OPC UA: tags, PackML arrays and conditions of a real server become alarms."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asyncua.crypto.cert_gen import setup_self_signed_certificate
from cryptography.x509.oid import ExtendedKeyUsageOID

from edge_agent.errors import ConfigRejected
from edge_agent.settings import SourceKind
from edge_agent.sources import Context
from edge_agent.sources.opcua import build
from tests.support.opcua_server import OpcuaServer
from tests.support.source_run import SourceRun, source_settings
from wire.clock import PlantClock
from wire.events import TransitionKind

CODE: dict[str, Any] = {"as": "code", "node": "ns=2;s=code"}
BITS: dict[str, Any] = {"as": "bits", "node": "ns=2;s=word", "code": 1000}
FLAG: dict[str, Any] = {"as": "flag", "node": "ns=2;s=flag", "name": "Door open"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpcuaServer]:
    made = OpcuaServer(tmp_path_factory.mktemp("opcua"))
    yield made
    made.close()


@pytest.fixture
def server(running: OpcuaServer) -> OpcuaServer:
    running.reset()
    return running


@pytest.fixture
def run(tmp_path: Path, server: OpcuaServer) -> Iterator[Any]:
    """Start a run; all runs of a test share a spool, one after the other."""
    runs: list[SourceRun] = []

    def start(*, password: str | None = None, **options: Any) -> SourceRun:
        for before in runs:
            before.close()
        options = {"url": server.url, "publish_ms": 20, **options}
        settings = source_settings(SourceKind.OPCUA, options, source_password=password)
        runs[:] = [SourceRun(tmp_path, settings)]
        return runs[0]

    yield start
    for one in runs:
        one.close()


def tags(run: Any, *signals: dict[str, Any], **more: Any) -> SourceRun:
    found: SourceRun = run(mode="tags", signals=list(signals), **more)
    return found.until_read()


def test_tags_are_raised_and_cleared(run: Any, server: OpcuaServer) -> None:
    found = tags(run, CODE, BITS, FLAG)
    server.write("code", 139)
    found.until_raised(139)
    server.write("word", 0b101)
    found.until_raised(139, 1000, 1002)
    server.write("flag", True)  # noqa: FBT003
    found.until(lambda run: [code.name for code in run.spool.codes()] == ["Door open"], "the name has a number")
    assert found.raised == [139, 1000, 1002, found.spool.codes()[0].code]
    server.write("word", 0b100)
    found.until(lambda run: run.cleared == [1000], "the bit is cleared")


def test_short_changes_between_two_publishings_are_complete(run: Any, server: OpcuaServer) -> None:
    found = tags(run, CODE)
    server.write_all("code", [1, 0, 2, 0, 3, 0])
    found.until_raised(1, 2, 3)
    assert found.raised == [1, 2, 3]


def test_restart_of_the_server_is_a_gap_and_active_alarms_are_not_raised_again(
    run: Any, server: OpcuaServer
) -> None:
    found = tags(run, CODE, BITS)
    server.write("code", 139)
    found.until_raised(139)
    server.stop()
    found.until(lambda run: "Cannot read opc.tcp://127.0.0.1" in run.warning, "there is a warning")
    server.write("word", 1)
    server.start()
    found.until(lambda run: 1000 in run.raised, "the new alarm is raised")
    assert found.raised == [139, 1000]
    assert len(found.gaps) == 1


def test_missing_node_and_wrong_type_do_not_stop_the_rest(run: Any, server: OpcuaServer) -> None:
    missing = {"as": "code", "node": "ns=2;s=later"}
    found = tags(run, missing, {"as": "bits", "node": "ns=2;s=float"}, CODE)
    server.write("code", 139)
    found.until_raised(139)
    found.until(lambda run: run.spool.skipped == 2, "both are counted once")
    assert "its type is Double" in found.last_skipped


def test_text_is_the_name_of_an_alarm(run: Any, server: OpcuaServer) -> None:
    found = tags(run, {"as": "code", "node": "ns=2;s=text"})
    server.write("text", "F139")
    found.until(lambda run: [code.name for code in run.spool.codes()] == ["F139"], "the name has a number")


def test_packml_alarms_are_active_while_their_trigger_is_true(run: Any, server: OpcuaServer) -> None:
    found = run(mode="packml", node="ns=2;s=Admin").until_read()
    server.write("Alarm", [server.alarm(139, "Jam", trigger=True), server.alarm(7)])
    found.until_raised(139)
    server.write("Warning", [server.alarm(8, "Film low", trigger=True)])
    found.until_raised(139, 8)
    server.write("Alarm", [server.alarm(139), server.alarm(7, trigger=True)])
    found.until_raised(139, 8, 7)
    assert (found.raised, found.cleared) == ([139, 8, 7], [139])


def test_packml_stop_reason_is_a_stop_and_no_alarm(run: Any, server: OpcuaServer) -> None:
    found = run(mode="packml", node="ns=2;s=Admin").until_read()
    server.write("Alarm", [server.alarm(139, "Jam", trigger=True)])
    found.until_raised(139)
    server.write("StopReason", [server.alarm(139, "Jam", trigger=True)])
    found.until(lambda run: run.changed(TransitionKind.STOPPED) == [139], "the machine stands")
    server.write("StopReason", [server.alarm(0)])
    found.until(lambda run: run.changed(TransitionKind.RESUMED) == [139], "the machine runs again")
    assert (found.raised, found.cleared) == ([139], [])


def test_condition_is_acknowledged_once(run: Any, server: OpcuaServer) -> None:
    server.condition("Jam", active=True)
    found = run(mode="conditions").until_raised(1)
    server.condition("Jam", active=True, acked=True)
    server.condition("Jam", active=True, acked=True, message="Still there")
    server.condition("Jam", active=False, acked=True)
    found.until(lambda run: len(run.cleared) == 1, "it is cleared")
    assert found.changed(TransitionKind.ACKNOWLEDGED) == found.cleared == found.raised


def test_conditions_are_raised_once_through_refresh_and_reconnect(run: Any, server: OpcuaServer) -> None:
    server.condition("Jam", active=True, message="Bottle jam")
    server.condition("Film", active=True)
    found = run(mode="conditions").until_raised(1, 2)
    assert {(code.name, code.text, code.severity) for code in found.spool.codes()} == {
        ("Infeed.Jam", "Bottle jam", "500"),
        ("Infeed.Film", "Film", "500"),
    }
    server.condition("Film", active=False)
    found.until(lambda run: len(run.cleared) == 1, "one is cleared")
    server.condition("Film", active=True)
    found.until_raised(1, 2, 3)
    server.stop()
    found.until(lambda run: "Cannot read" in run.warning, "there is a warning")
    server.condition("Film", active=False)
    server.condition("Door", active=True)
    server.start()
    found.until_raised(1, 2, 3, 4)
    found.until(lambda run: len(run.cleared) == 2, "the refresh clears what it does not contain")
    number = {code.name: code.code for code in found.spool.codes()}
    jam, film, door = (number[f"Infeed.{name}"] for name in ("Jam", "Film", "Door"))
    assert (found.raised, found.cleared) == ([jam, film, film, door], [film, film])
    assert len(found.gaps) == 1


def test_restart_of_the_agent_does_not_raise_conditions_again(run: Any, server: OpcuaServer) -> None:
    server.condition("Jam", active=True)
    run(mode="conditions").until_raised(1)
    second = run(mode="conditions")
    server.condition("Door", active=True)
    second.until_raised(1, 2)
    assert len(set(second.raised)) == len(second.raised) == 2
    assert len(second.gaps) == 1


@pytest.mark.parametrize("policy", ["Basic256Sha256", "Aes128Sha256RsaOaep", "Aes256Sha256RsaPss"])
def test_policies_with_certificates_and_password(
    run: Any, server: OpcuaServer, tmp_path: Path, policy: str
) -> None:
    secured = {
        "security_policy": policy,
        "server_certificate": str(server.certificate),
        "certificate": str(tmp_path / "own.der"),
        "private_key": str(tmp_path / "own.pem"),
        "username": "agent",
    }
    found = tags(run, CODE, password="secret", **secured)  # noqa: S106
    server.write("code", 139)
    found.until_raised(139)
    assert (tmp_path / "own.pem").stat().st_mode & 0o777 == 0o600


def check(server: OpcuaServer, password: str | None = None, **options: Any) -> dict[str, Any]:
    table = {"url": server.url, "mode": "tags", "signals": [CODE], **options}
    source = build(table, Context(PlantClock(), password=password))
    return {finding.check: finding for finding in source.check()}


def test_doctor_checks_clock_and_nodes(server: OpcuaServer) -> None:
    server.write("code", 139)
    found = check(server, signals=[CODE, {"as": "flag", "node": "ns=2;s=none"}])
    assert (found["source"].ok, found["source clock"].ok) == (True, True)
    assert (found["ns=2;s=code"].ok, "139" in found["ns=2;s=code"].message) == (True, True)
    assert (found["ns=2;s=none"].ok, "BadNodeIdUnknown" in found["ns=2;s=none"].message) == (False, True)


def test_wrong_password_and_wrong_server_certificate_are_findings(server: OpcuaServer, tmp_path: Path) -> None:
    assert check(server, "wrong", username="agent")["source"].ok is False
    secured = {
        "security_policy": "Basic256Sha256",
        "server_certificate": str(server.certificate),
        "certificate": str(tmp_path / "own.der"),
        "private_key": str(tmp_path / "own.pem"),
    }
    assert check(server, **secured)["source"].ok is True
    of_another = secured | {"server_certificate": str(tmp_path / "own.der")}
    assert check(server, **of_another)["source"].ok is False
    missing = check(server, **secured | {"server_certificate": str(tmp_path / "none.der")})["source"]
    assert "export the server's certificate" in missing.message


def test_packml_members_may_be_separate_nodes(run: Any, server: OpcuaServer) -> None:
    server.add_packml_members("Members", 2)
    found = run(mode="packml", node="ns=2;s=Members", arrays=["Alarm"]).until_read()
    server.write("0.Trigger", True)  # noqa: FBT003 - without an ID it is no alarm
    server.write("0.Message", "Jam")
    server.write("0.ID", 139)
    found.until_raised(139)
    server.write("1.ID", 8)
    server.write("1.Trigger", True)  # noqa: FBT003
    found.until_raised(139, 8)
    server.write("0.Trigger", False)  # noqa: FBT003
    found.until(lambda run: run.cleared == [139], "it is cleared")
    second = run(mode="packml", node="ns=2;s=Members", arrays=["Alarm"])
    server.write("0.Trigger", True)  # noqa: FBT003
    second.until_raised(139, 8, 139)
    assert second.raised == [139, 8, 139]


def test_user_logs_in_with_a_certificate(run: Any, server: OpcuaServer, tmp_path: Path) -> None:
    certificate, key = tmp_path / "user.der", tmp_path / "user.pem"
    asyncio.run(
        setup_self_signed_certificate(
            key, certificate, "urn:user", "localhost", [ExtendedKeyUsageOID.CLIENT_AUTH], {"commonName": "agent"}
        )
    )
    server.users.certificates.add(certificate.read_bytes())
    secured = {
        "security_policy": "Basic256Sha256",
        "server_certificate": str(server.certificate),
        "certificate": str(tmp_path / "own.der"),
        "private_key": str(tmp_path / "own.pem"),
    }
    assert check(server, **secured)["source"].ok is False
    secured |= {"user_certificate": str(certificate), "user_private_key": str(key)}
    found = tags(run, CODE, **secured)
    server.write("code", 139)
    found.until_raised(139)
    key.unlink()
    assert "there is no file" in check(server, **secured)["source"].message


def test_server_with_another_certificate_is_not_read(run: Any, server: OpcuaServer, tmp_path: Path) -> None:
    secured = {
        "security_policy": "Basic256Sha256",
        "server_certificate": str(server.certificate),
        "certificate": str(tmp_path / "own.der"),
        "private_key": str(tmp_path / "own.pem"),
    }
    tags(run, CODE, **secured)
    server.write("code", 139)
    other = run(mode="tags", signals=[CODE], **secured | {"server_certificate": str(tmp_path / "own.der")})
    other.until(lambda run: "Cannot read opc.tcp://" in run.warning, "there is a warning")
    assert 139 not in other.cleared


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"mode": "tags"}, r"needs \[\[opcua\.signals\]\]"),
        ({"mode": "packml"}, "needs node"),
        ({"mode": "conditions", "security_policy": "Basic256Sha256"}, "needs server_certificate"),
        ({"mode": "tags", "signals": [{"as": "flag", "node": "word"}]}, "is not a node id like"),
        ({"mode": "conditions", "url": "http://plc"}, r"opcua\.url is wrong"),
        ({"mode": "conditions", "user_certificate": "a"}, "go together"),
        ({"mode": "conditions", "user_certificate": "a", "user_private_key": "b"}, "needs a security_policy"),
    ],
)
def test_mistake_in_the_table_is_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigRejected, match=sentence):
        build({"url": "opc.tcp://plc"} | options, Context(PlantClock()))
