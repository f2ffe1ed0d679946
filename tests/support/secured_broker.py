"""A guarded Mosquitto, made of what ``broker-init`` writes, and clients that try their luck there."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.reasoncodes import ReasonCode

from service.broker_access.dynamic_security import DynamicSecurityClient
from service.broker_access.mosquitto_setup import SERVICE, Listener, find_plugin, write
from tests.conftest import Mosquitto
from wire.broker_check import tls_context
from wire.mqtt import BrokerConfig

CA, CERT, KEY = "ca.pem", "client-service.pem", "client-service.key"


@dataclass
class GuardedMosquitto(Mosquitto):
    """Nobody comes in without a password; with ``tls``, nobody without a certificate of that folder either."""

    tls: Path | None = None

    def configure(self) -> Path:
        config = self.folder / "mosquitto.conf"
        if not config.exists():
            listener = Listener(self.port, "127.0.0.1", self.tls, self.tls is not None)
            write(self.folder, listener, seen_as=self.folder, plugin=find_plugin(), owner=None)
            config.write_text(f"{config.read_text()}{self.extra}")
        return config

    def password(self, who: str = "service") -> str:
        return (self.folder / f"{who}-password").read_text().strip()

    @property
    def memory(self) -> Path:
        return self.folder / "data" / "dynamic-security.json"

    def remembered(self) -> dict[str, Any]:
        """Return the plugin's memory, which Mosquitto 2.0.11 writes in place: a look may fall on half of it."""
        deadline = time.monotonic() + 20
        while True:
            try:
                found: dict[str, Any] = json.loads(self.memory.read_text())
            except json.JSONDecodeError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
            else:
                return found

    def holders(self) -> dict[str, dict[str, Any]]:
        """Return the clients in the plugin's memory, by name."""
        return {one["username"]: one for one in self.remembered()["clients"]}

    def roles(self) -> set[str]:
        return {one["rolename"] for one in self.remembered()["roles"]}

    def forget(self, machine: str) -> None:
        """Let the plugin's memory be from before a machine was enrolled; the broker must not be running."""
        memory = self.remembered()
        name = f"alarmcast-edge/{machine}"
        memory["clients"] = [one for one in memory["clients"] if one["username"] != name]
        memory["roles"] = [one for one in memory["roles"] if one["rolename"] != name]
        self.memory.write_text(json.dumps(memory))

    @property
    def address(self) -> BrokerConfig:
        plain = BrokerConfig("127.0.0.1", self.port, username=SERVICE, password=self.password())
        if self.tls is None:
            return plain
        return replace(plain, tls=True, tls_ca=self.tls / CA, tls_cert=self.tls / CERT, tls_key=self.tls / KEY)

    @property
    def security(self) -> DynamicSecurityClient:
        return DynamicSecurityClient(self.address, client_id="test")

    @property
    def environment(self) -> dict[str, str]:
        """What the service needs to speak to it."""
        told = {"BROKER_USERNAME": SERVICE, "BROKER_PASSWORD": self.password()}
        if self.tls:
            told |= {"BROKER_TLS": "true", "BROKER_TLS_CA": str(self.tls / CA)}
            told |= {"BROKER_TLS_CERT": str(self.tls / CERT), "BROKER_TLS_KEY": str(self.tls / KEY)}
        return {f"ALARMCAST_{name}": value for name, value in told.items()}

    def ctl(self, *words: str) -> str:
        """Do something as a person with mosquitto_ctrl would."""
        program = ["mosquitto_ctrl", "-h", "127.0.0.1", "-p", str(self.port), "-u", "admin"]
        command = [*program, "-P", self.password("admin"), "dynsec", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def guarded_in(folder: Path, *, tls: Path | None = None) -> GuardedMosquitto:
    """Return a guarded broker that keeps its memory in a new folder; not started yet."""
    folder.mkdir()
    return GuardedMosquitto(folder, extra="user root\n" if os.getuid() == 0 else "", tls=tls)


def has_plugin() -> bool:
    """Say whether this computer has Mosquitto and its plugin."""
    program = shutil.which("mosquitto") or Path("/usr/sbin/mosquitto").exists()
    return bool(program) and any(Path("/usr/lib").rglob("mosquitto_dynamic_security.so"))


@dataclass
class Peer:
    """A client that tries its luck, and what the broker said to it."""

    client: mqtt.Client
    answer: ReasonCode | None = None
    gone: Event = field(default_factory=Event)
    heard: list[str] = field(default_factory=list)
    _answered: Event = field(default_factory=Event)
    _codes: dict[int, list[ReasonCode]] = field(default_factory=dict)
    _said: Event = field(default_factory=Event)

    @property
    def is_in(self) -> bool:
        return self.answer is not None and not self.answer.is_failure

    def publish(self, topic: str, payload: bytes = b"{}") -> str:
        """Return what the broker says to a message."""
        return self._asked(self.client.publish(topic, payload, qos=1).mid)[0]

    def subscribe(self, topic: str) -> str:
        """Return what the broker says to a subscription."""
        mid = self.client.subscribe(topic, qos=1)[1]
        assert mid is not None
        return self._asked(mid)[0]

    def _asked(self, mid: int) -> list[str]:
        for _ in range(1000):
            if mid in self._codes:
                return [str(code) for code in self._codes[mid]]
            self._said.wait(0.02)
            self._said.clear()
        raise AssertionError("the broker does not answer")


@contextmanager
def trying(broker: GuardedMosquitto, username: str, password: str, client_id: str | None = None) -> Iterator[Peer]:
    """Try to come in; yields whether or not the broker lets us."""
    client = mqtt.Client(
        CallbackAPIVersion.VERSION2,
        client_id=username if client_id is None else client_id,
        protocol=MQTTProtocolVersion.MQTTv5,
        reconnect_on_failure=False,
    )
    peer = Peer(client)
    client.username_pw_set(username, password)
    if broker.tls:
        client.tls_set_context(tls_context(broker.address))

    def said(mid: int, codes: list[ReasonCode]) -> None:
        peer._codes[mid] = codes  # noqa: SLF001
        peer._said.set()  # noqa: SLF001

    def connected(_c: Any, _d: Any, _f: Any, reason: ReasonCode, _p: Any) -> None:
        peer.answer = reason
        peer._answered.set()  # noqa: SLF001

    client.on_connect = connected
    client.on_publish = lambda _c, _d, mid, reason, _p: said(mid, [reason])
    client.on_subscribe = lambda _c, _d, mid, reasons, _p: said(mid, reasons)
    client.on_message = lambda _c, _d, message: peer.heard.append(message.topic)
    client.on_disconnect = lambda *_: peer.gone.set()
    client.connect("127.0.0.1", broker.port)
    client.loop_start()
    try:
        assert peer._answered.wait(20), "the broker does not answer"  # noqa: SLF001
        yield peer
    finally:
        client.disconnect()
        client.loop_stop()
