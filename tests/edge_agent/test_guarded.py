"""The doctor in front of a guarded broker that wants a certificate too: each lack is named."""

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from edge_agent.doctor import examine
from edge_agent.errors import ConfigRejected
from edge_agent.settings import load
from edge_agent.spool import Spool
from edge_agent.status import AgentStatus, StatusFile, fingerprint
from service.broker_access.certificates import Authority
from tests.conftest import require
from tests.support.secured_broker import GuardedMosquitto, guarded_in, has_plugin, trying
from wire.broker_check import Finding
from wire.identity import MachineId
from wire.topics import agent_name

FILLER = MachineId("padova", "filler-1")


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    folder = tmp_path / "tls"
    Authority(folder, datetime.now(UTC)).create(hosts=["localhost"], clients=["service", "filler"])
    return folder


@pytest.fixture
def secured(tmp_path: Path, certificates: Path) -> Iterator[GuardedMosquitto]:
    require(has_plugin(), "mosquitto with its dynamic-security plugin")
    broker = guarded_in(tmp_path / "guarded", tls=certificates)
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[GuardedMosquitto]:
    require(has_plugin(), "mosquitto with its dynamic-security plugin")
    broker = guarded_in(tmp_path / "guarded")
    broker.start()
    yield broker
    broker.kill()


def findings(tmp_path: Path, broker: GuardedMosquitto, **more: object) -> dict[str, Finding]:
    flags = {
        "site": "padova",
        "machine": "filler-1",
        "source_kind": "simulated",
        "spool_path": tmp_path / "spool",
        "broker_host": "localhost",
        "broker_port": broker.port,
        "broker_username": agent_name(FILLER),
    } | more
    return {one.check: one for one in examine(None, {name: str(value) for name, value in flags.items()})}


def test_a_broker_that_wants_a_certificate_is_told_and_so_is_one_it_does_not_take(
    tmp_path: Path, secured: GuardedMosquitto, certificates: Path
) -> None:
    tls = {"broker_tls": "true", "broker_tls_ca": certificates / "ca.pem"}
    nothing = findings(tmp_path, secured, **tls)
    assert nothing["TLS"].ok is False
    assert "give broker.tls_cert" in nothing["TLS"].message
    other = tmp_path / "other"
    Authority(other, datetime.now(UTC)).create(hosts=["x"], clients=["filler"])
    shown = {"broker_tls_cert": other / "client-filler.pem", "broker_tls_key": other / "client-filler.key"}
    strange = findings(tmp_path, secured, **tls, **shown)
    assert strange["TLS"].ok is False
    assert "rejects our certificate" in strange["TLS"].message
    missing = findings(tmp_path, secured, **tls, **shown | {"broker_tls_key": "/nowhere.key"})
    assert missing["TLS"].message == "there is no file /nowhere.key; correct broker.tls_key"
    mixed = findings(tmp_path, secured, **tls, **shown | {"broker_tls_key": certificates / "api.key"})
    assert "cannot be used" in mixed["TLS"].message
    right = {"broker_tls_cert": certificates / "client-filler.pem"}
    right |= {"broker_tls_key": certificates / "client-filler.key"}
    assert findings(tmp_path, secured, **tls, **right)["TLS"].ok is True


def test_a_certificate_that_ends_soon_is_doubtful(tmp_path: Path) -> None:
    require(has_plugin(), "mosquitto with its dynamic-security plugin")
    old = datetime.now(UTC) - timedelta(days=705)
    Authority(tmp_path / "old", old).create(hosts=["localhost"], clients=["service"])
    broker = guarded_in(tmp_path / "guarded", tls=tmp_path / "old")
    broker.start()
    shown = {f"broker_tls_{kind}": tmp_path / "old" / f"client-service.{end}" for kind, end in
             (("cert", "pem"), ("key", "key"))}  # fmt: skip
    found = findings(tmp_path, broker, broker_tls="true", broker_tls_ca=tmp_path / "old" / "ca.pem", **shown)
    broker.kill()
    assert found["TLS"].ok is None
    assert "renew it soon" in found["TLS"].message


def test_with_the_machines_own_password_the_doctor_is_let_in_as_its_agent(
    tmp_path: Path, guarded: GuardedMosquitto
) -> None:
    guarded.security.grant(FILLER, generation=1, password="secret")  # noqa: S106
    assert findings(tmp_path, guarded, broker_password="secret")["credentials"].ok is True  # noqa: S106
    wrong = findings(tmp_path, guarded, broker_password="wrong")["credentials"]  # noqa: S106
    assert wrong.ok is False
    assert "broker.username" in wrong.message


def test_the_doctor_does_not_throw_a_running_agent_out(tmp_path: Path, guarded: GuardedMosquitto) -> None:
    guarded.security.grant(FILLER, generation=1, password="secret")  # noqa: S106
    spool = Spool(tmp_path / "spool")
    credentials = fingerprint(agent_name(FILLER), "secret")
    said = AgentStatus(os.getpid(), "padova/filler-1", "b", connected=True, since="now", credentials=credentials)
    StatusFile(tmp_path / "spool").write(said)
    with trying(guarded, agent_name(FILLER), "secret") as agent:
        found = findings(tmp_path, guarded, broker_password="secret")["credentials"]  # noqa: S106
        assert found.ok is True
        assert "the running agent" in found.message
        wrong = findings(tmp_path, guarded, broker_password="wrong")["credentials"]  # noqa: S106
        assert wrong.ok is False, "a password that is not the agent's is really tried"
        assert "check broker.username, and the password" in wrong.message
        assert not agent.gone.is_set()
        StatusFile(tmp_path / "spool").write(replace(said, credentials=None))
        assert findings(tmp_path, guarded, broker_password="secret")["credentials"].ok is None  # noqa: S106
    StatusFile(tmp_path / "spool").write(
        AgentStatus(os.getpid(), "padova/filler-1", "b", connected=False, since="now", error="refused")
    )
    found = findings(tmp_path, guarded, broker_password="secret")["credentials"]  # noqa: S106
    assert (found.ok, "refused" in found.message) == (False, True)
    spool.close()
    assert agent.gone.wait(10)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"broker_tls": "true", "broker_tls_cert": "x"}, "go together"),
        ({"broker_tls": "true", "broker_tls_ca": "x", "broker_tls_ca_pem": "y"}, "give one of them"),
    ],
)
def test_tls_that_is_not_whole_is_refused(flags: dict[str, str | None], words: str) -> None:
    named = {"site": "padova", "machine": "filler-1", "source_kind": "simulated"}
    with pytest.raises(ConfigRejected, match=words):
        load(None, named | flags, {})
