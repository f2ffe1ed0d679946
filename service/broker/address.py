"""Where the broker is, and a client that can speak to it: version, user name, TLS."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from service.broker.read_ahead import Client
from service.errors import InputRejected
from wire.tls_port import speaks_tls


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
