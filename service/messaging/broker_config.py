"""Where the broker is, and a client that can speak to it: version, user name, TLS."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any
from uuid import uuid4

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.reasoncodes import ReasonCode

from service.errors import InputRejected
from service.messaging.mqtt_socket import Client
from wire.tls_port import speaks_tls
from wire.topics import Channel, every_machine


@dataclass(frozen=True)
class BrokerAddress:
    """Where the broker is and how to speak to it."""

    host: str
    port: int
    protocol: MQTTProtocolVersion = MQTTProtocolVersion.MQTTv5
    username: str | None = None
    password: str | None = None
    tls: bool = False
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None

    @property
    def speaks_v5(self) -> bool:
        """Whether refusals can be told from successes."""
        return self.protocol == MQTTProtocolVersion.MQTTv5

    def tls_hint(self) -> str | None:
        """Say what to set if we speak plain MQTT to a port that speaks TLS; it only hangs up on us."""
        if self.tls or not speaks_tls(self.host, self.port):
            return None
        return (
            f"the broker's port {self.host}:{self.port} speaks TLS and we do not: set ALARMCAST_BROKER_TLS=true, "
            "and ALARMCAST_BROKER_TLS_CA if a private authority signed its certificate"
        )

    def client(self, client_id: str, **more: Any) -> mqtt.Client:
        """Return a client that is not connected yet; ``more`` are options of paho's own."""
        client = Client(CallbackAPIVersion.VERSION2, client_id=client_id, protocol=self.protocol, **more)
        if self.username is not None:
            client.username_pw_set(self.username, self.password)
        if self.tls:
            client.tls_set_context(self._context())
        client.suppress_exceptions = True  # an exception in a callback would end paho's thread for good
        return client

    def _context(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self.tls_ca)
            if self.tls_cert is not None:
                context.load_cert_chain(self.tls_cert, self.tls_key)
        except OSError as error:  # ssl.SSLError is one too
            raise InputRejected(
                f"The files for TLS with the broker cannot be used: {error.strerror or error}. See the settings "
                "broker_tls_ca, broker_tls_cert and broker_tls_key."
            ) from None
        return context


def connection_error(address: BrokerAddress, *, client_id: str, seconds: float) -> str | None:
    """Return why the broker does not let us in and listen, or None if it does.

    Under a name of its own and without a session, because of two clients of one name the broker drops the first.
    """
    session = {} if address.speaks_v5 else {"clean_session": True}
    client = address.client(f"{client_id}-check-{uuid4().hex[:8]}", **session)
    answered, words = Event(), ["it does not answer in this version of MQTT"]

    def connected(client: mqtt.Client, _data: Any, _flags: Any, reason: ReasonCode, _properties: Any) -> None:
        if reason.is_failure:
            words[:] = [f"it refuses us: {reason}"]
            answered.set()
        else:
            words[:] = ["it does not answer a subscription"]
            client.subscribe(every_machine(Channel.STATE), qos=1)

    def subscribed(_c: mqtt.Client, _data: Any, _mid: int, reasons: list[ReasonCode], _p: Any) -> None:
        words[:] = [f"it refuses a subscription: {reason}" for reason in reasons if reason.is_failure]
        answered.set()

    client.on_connect, client.on_subscribe = connected, subscribed
    try:
        client.connect(address.host, address.port, keepalive=10)
    except (OSError, ValueError) as error:
        return str(error)
    client.loop_start()
    answered.wait(seconds)
    client.disconnect()
    client.loop_stop()
    return words[0] if words else None
