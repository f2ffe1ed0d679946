"""Plain MQTT to a port that speaks TLS: everybody who meets it says so, and what to set."""

import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import pytest

from edge_agent import doctor as edge_doctor
from edge_agent.publisher import Publisher
from edge_agent.spool import Spool
from edge_agent.tls_check import TlsCheck
from service.app import config_check as doctor
from service.app.configuration import configuration
from service.broker_access.certificates import Authority
from service.broker_access.dynamic_security import DynamicSecurityClient
from service.broker_access.mosquitto_setup import Listener
from service.errors import Unavailable
from service.messaging.broker_stats import BrokerStats
from service.messaging.mqtt_client import MqttClient
from tests.conftest import Mosquitto, wait_until
from wire.broker_check import speaks_tls
from wire.clock import PlantClock
from wire.identity import MachineId
from wire.mqtt import BrokerConfig


class SecuredMosquitto(Mosquitto):
    """A broker with one listener, which speaks TLS."""

    def configure(self) -> Path:
        Authority(self.folder / "tls", datetime.now(UTC)).create(hosts=["localhost", "127.0.0.1"], clients=[])
        config = self.folder / "mosquitto.conf"
        lines = Listener(self.port, "127.0.0.1", self.folder / "tls").lines()
        config.write_text("\n".join([*lines, "allow_anonymous true", self.extra]))
        return config


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Mosquitto]:
    broker = SecuredMosquitto(tmp_path, extra="user root\n" if os.getuid() == 0 else "")
    broker.start()
    yield broker
    broker.kill()


def test_whoever_speaks_plainly_to_a_tls_port_says_what_to_set(secured: Mosquitto, tmp_path: Path) -> None:
    address = BrokerConfig("127.0.0.1", secured.port)
    link = MqttClient(
        address,
        client_id="test",
        receive_maximum=10,
        deliver=lambda _delivery: True,
        watch=BrokerStats(queue_alarm=1),
    )
    link.start()
    try:
        wait_until(lambda: "set ALARMCAST_BROKER_TLS=true" in (link.error or ""), "the service says it")
    finally:
        link.stop()
    with pytest.raises(Unavailable, match="speaks TLS and the service does not"):
        DynamicSecurityClient(address, client_id="test").probe()
    flags = {"data_dir": tmp_path / "data", "port": 0, "broker_port": secured.port}
    found = {finding.check: finding for finding in doctor.examine(configuration(**flags))}
    assert (found["TLS"].ok, "ALARMCAST_BROKER_TLS_CA" in found["TLS"].message) == (False, True)
    assert "credentials" not in found
    agent = {"site": "padova", "machine": "filler-1", "source_kind": "simulated"}
    there = {"broker_host": "127.0.0.1", "broker_port": str(secured.port), "spool_path": str(tmp_path / "spool")}
    at_the_edge = {finding.check: finding for finding in edge_doctor.examine(None, agent | there)}
    assert at_the_edge["TLS"].ok is False
    assert "set tls = true" in at_the_edge["TLS"].message
    assert "credentials" not in at_the_edge


def test_an_agent_that_runs_says_that_the_port_speaks_tls(secured: Mosquitto, tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    publisher = Publisher(
        machine=MachineId("padova", "filler-1"),
        broker=BrokerConfig("127.0.0.1", secured.port),
        spool=spool,
        clock=PlantClock(),
        agent_version="1",
    )
    publisher.start()
    try:
        wait_until(lambda: "set tls = true below [broker]" in (publisher.error or ""), "the agent says it")
    finally:
        publisher.stop()
        spool.close()


def test_a_port_that_never_answers_is_probed_seldom() -> None:
    greetings: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hang_up() -> None:
            while True:
                connection, _ = listener.accept()
                with connection:
                    greetings.append(connection.recv(1))
                    if greetings[-1] == b"q":
                        return

        thread = Thread(target=hang_up, daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        check = TlsCheck("127.0.0.1", port)
        assert not any(check.unanswered() for _ in range(5))
        check.answered()
        assert not check.unanswered(), "after an answer the port is probed anew"
        with socket.create_connection(("127.0.0.1", port)) as last:
            last.sendall(b"q")
            thread.join(timeout=30)
    assert greetings == [b"\x16", b"\x16", b"q"]


def test_a_port_that_speaks_plainly_is_not_taken_for_one_that_speaks_tls(mosquitto: Mosquitto) -> None:
    assert not speaks_tls("127.0.0.1", mosquitto.port)
