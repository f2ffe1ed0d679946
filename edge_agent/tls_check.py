"""Detect a TLS port behind plain connections that are closed without an answer."""

import time

from wire.broker_check import speaks_tls
from wire.mqtt import BrokerConfig

PROBE_INTERVAL_S = 60.0  # while no connection is answered


def needs_tls(broker: BrokerConfig) -> str:
    """Return the message for a port that speaks TLS while the agent does not."""
    return (
        f"the port {broker} speaks TLS and this agent does not: set tls = true below [broker], and tls_ca "
        "if a private authority signed the broker's certificate"
    )


class TlsCheck:
    """Probes one port for TLS, at most once a minute."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._speaks_tls, self._probe_at = False, 0.0

    def answered(self) -> None:
        """Record that a plain connection was answered, so the port does not speak TLS."""
        self._speaks_tls, self._probe_at = False, 0.0

    def unanswered(self) -> bool:
        """Return whether the port speaks TLS, after a plain connection was closed without an answer."""
        if not self._speaks_tls and time.monotonic() >= self._probe_at:
            self._speaks_tls = speaks_tls(self._host, self._port)
            self._probe_at = time.monotonic() + PROBE_INTERVAL_S
        return self._speaks_tls
