"""The doctor and the status: what is wrong is said in words, against real brokers, names and certificates."""

import json
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import pytest

from edge_agent.doctor import examine
from edge_agent.spool import Spool
from edge_agent.spool_models import Appendix
from tests.conftest import Mosquitto, free_port, require
from tests.system.conftest import clean_environment
from wire.broker_check import Finding
from wire.state import Note


def findings(tmp_path: Path, **more: object) -> dict[str, Finding]:
    flags = {
        "site": "padova",
        "machine": "filler-1",
        "source_kind": "simulated",
        "spool_path": str(tmp_path / "spool"),
    } | {name: str(value) for name, value in more.items()}
    return {finding.check: finding for finding in examine(None, flags)}


def test_a_wrong_configuration_ends_the_examination_with_its_sentence(tmp_path: Path) -> None:
    found = findings(tmp_path, broker_port=0)
    assert list(found) == ["configuration"]
    assert "broker_port" in found["configuration"].message


def test_a_name_that_no_dns_knows_is_named(tmp_path: Path) -> None:
    found = findings(tmp_path, broker_host="broker.invalid")
    assert found["name"].ok is False
    assert "broker.invalid" in found["name"].message
    assert "network" not in found


def test_a_broker_that_is_not_there_is_told_from_a_wrong_name(tmp_path: Path) -> None:
    found = findings(tmp_path, broker_port=free_port())
    assert (found["name"].ok, found["network"].ok) == (True, False)
    assert "firewall" in found["network"].message


def test_with_a_broker_and_no_service_it_is_the_service_that_is_missing(
    tmp_path: Path, mosquitto: Mosquitto
) -> None:
    found = findings(tmp_path, broker_port=mosquitto.port)
    assert found["credentials"].ok is True
    assert found["service"].ok is False
    assert "no subscriber" in found["service"].message


def test_a_broker_that_wants_a_password_is_told(tmp_path: Path, mosquitto: Mosquitto) -> None:
    mosquitto.kill()
    mosquitto.anonymous = False
    mosquitto.start()
    found = findings(tmp_path, broker_port=mosquitto.port)
    assert found["credentials"].ok is False
    assert "ALARMCAST_EDGE_BROKER_PASSWORD" in found["credentials"].message


class TlsServer:
    """Shakes hands and says nothing."""

    def __init__(self, certificate: Path, key: Path) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        self.context = context
        Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            try:
                with self.context.wrap_socket(connection, server_side=True):
                    pass
            except OSError:
                connection.close()


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for localhost that signs itself."""
    key, pem = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "90", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(pem)]
    done = subprocess.run(command, capture_output=True, check=False)
    require(done.returncode == 0, "openssl")
    return pem


@pytest.fixture
def tls_server(certificate: Path) -> Iterator[TlsServer]:
    server = TlsServer(certificate, certificate.with_name("key.pem"))
    yield server
    server.listener.close()


def test_a_certificate_is_trusted_only_where_its_authority_is_and_its_name_fits(
    tmp_path: Path, certificate: Path, tls_server: TlsServer
) -> None:
    secured = {"broker_port": tls_server.port, "broker_tls": "true"}
    stranger = findings(tmp_path, broker_host="localhost", **secured)["TLS"]
    assert stranger.ok is False
    assert "not trusted" in stranger.message
    known = findings(tmp_path, broker_host="localhost", broker_tls_ca=certificate, **secured)["TLS"]
    assert known.ok is True
    other_name = findings(tmp_path, broker_host="127.0.0.1", broker_tls_ca=certificate, **secured)["TLS"]
    assert other_name.ok is False
    missing = findings(tmp_path, broker_host="localhost", broker_tls_ca="/nowhere.pem", **secured)["TLS"]
    assert "/nowhere.pem" in missing.message


def test_plain_mqtt_where_tls_is_wanted_is_told(tmp_path: Path, mosquitto: Mosquitto) -> None:
    found = findings(tmp_path, broker_port=mosquitto.port, broker_tls="true")
    assert found["TLS"].ok is False
    assert "TLS port" in found["TLS"].message


@pytest.mark.parametrize(
    ("content", "ok", "word"),
    [
        (None, None, "waits for it"),
        ('{"timestamp": "2026-11-16T00:00:00Z", "alarm": 139}\n', True, "139"),
        ("rubbish\n", None, "not an alarm"),
    ],
)
def test_the_last_line_of_a_log_says_whether_it_can_be_read(
    tmp_path: Path,
    content: str | None,
    ok: bool | None,  # noqa: FBT001
    word: str,
) -> None:
    log = tmp_path / "alarms.jsonl"
    if content is not None:
        log.write_text(content)
    found = findings(tmp_path, source_kind="tail", source_path=log, broker_host="broker.invalid")["source"]
    assert (found.ok, word in found.message) == (ok, True), found


def test_source_of_a_protocol_and_columns_of_a_log_are_checked(tmp_path: Path) -> None:
    options = json.dumps({"url": f"127.0.0.1:{free_port()}", "signals": [{"as": "flag", "address": "M1.0"}]})
    found = findings(tmp_path, source_kind="s7", source_options=options, broker_host="broker.invalid")["source"]
    assert (found.ok, "check address, rack, slot" in found.message) == (False, True)
    wrong = findings(tmp_path, source_kind="s7", broker_host="broker.invalid")["source"]
    assert (wrong.ok, wrong.message) == (False, "The setting s7.url is missing.")
    log = tmp_path / "log.csv"
    log.write_text("Zeit;Nr\n2026-11-16 08:00:00;139\n")
    columns = json.dumps({"delimiter": ";", "time": "Zeit", "code": "Nr"})
    more = {"source_kind": "tail", "source_path": log, "source_options": columns}
    assert "last alarm 139" in findings(tmp_path, broker_host="broker.invalid", **more)["source"].message


def edge(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "edge_agent", *(str(part) for part in arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=clean_environment(), check=False)


def test_status_tells_a_spool_whose_agent_is_gone(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.close()
    done = edge("status", "--spool-path", tmp_path / "spool", "--json")
    assert done.returncode == 1
    notes = {"transitions": 0, "skipped": 0, "last_skipped": None, "warning": None}
    assert json.loads(done.stdout) == {"running": False, "spooled": 0, "gaps": 0, "oldest": None, **notes}


def test_status_and_doctor_show_rows_that_could_not_be_read_and_the_last_of_them(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    at = datetime(2026, 11, 16, 8, tzinfo=UTC)
    skipped = Note(text="byte 12: '16.11.2026' is not a timestamp", at=at)
    spool.append([], "x", Appendix(skipped=3, last_skipped=skipped, warning=Note(text="The log was cut.", at=at)))
    spool.close()
    shown = json.loads(edge("status", "--spool-path", tmp_path / "spool", "--json").stdout)
    assert (shown["skipped"], shown["last_skipped"]["text"]) == (3, skipped.text)
    words = " ".join(edge("status", "--spool-path", tmp_path / "spool").stdout.split())
    assert "3 rows of the source could not be read; last: byte 12: '16.11.2026' is not a timestamp" in words
    assert "The log was cut. (2026-11-16T08:00:00+00:00)" in words
    found = findings(tmp_path, broker_host="broker.invalid")
    assert (found["rows"].ok, "3 rows" in found["rows"].message) == (None, True)
    assert "The log was cut." in found["warning"].message


def test_status_of_no_spool_is_one_sentence(tmp_path: Path) -> None:
    done = edge("status", "--spool-path", tmp_path / "none")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "--spool-path" in done.stderr
