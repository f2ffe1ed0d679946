"""Why a broker closes a plain connection without an answer: its port may speak TLS.

The port is probed only after such a connection, and seldom: a broker that is starting must not be asked each time.
"""

import time

from wire.tls_port import speaks_tls

PROBE_EVERY = 60.0  # seconds between two probes while no connection is answered


def needs_tls(address: object) -> str:
    """Return the sentence for a port that speaks TLS while the agent does not."""
    return (
        f"the port {address} speaks TLS and this agent does not: set tls = true below [broker], and tls_ca "
        "if a private authority signed the broker's certificate"
    )


class TlsCheck:
    """What is known of one port that closes plain connections without an answer."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._found, self._probe_at = False, 0.0

    def answered(self) -> None:
        """Note that a plain connection was answered, so that the port does not speak TLS."""
        self._found, self._probe_at = False, 0.0

    def unanswered(self) -> bool:
        """Say whether the port speaks TLS, after a plain connection was closed without an answer."""
        now = time.monotonic()
        if not self._found and now >= self._probe_at:
            self._found = speaks_tls(self._host, self._port)
            self._probe_at = time.monotonic() + PROBE_EVERY
        return self._found
