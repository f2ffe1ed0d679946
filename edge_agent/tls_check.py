"""A first greeting with the broker over TLS, and in words what came of it."""

import socket
import ssl
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from edge_agent.mqtt_connection import BrokerConfig
from wire.tls_port import speaks_tls

_TIMEOUT_S = 5.0
_REFUSAL_TIMEOUT_S = 0.5  # seconds in which a broker that does not like our certificate says so
_EXPIRY_WARNING = timedelta(days=30)


def check_tls(broker: BrokerConfig) -> tuple[bool | None, str]:
    """Return whether TLS can be spoken, None where it can and something is doubtful all the same; and why."""
    try:
        context = broker.tls_context()
    except OSError as error:  # ssl.SSLError is one too
        return False, _tls_files_error(broker, error)
    try:
        with (
            socket.create_connection((broker.host, broker.port), timeout=_TIMEOUT_S) as plain,
            context.wrap_socket(plain, server_hostname=broker.host) as secured,
        ):
            judged = _certificate_result(secured)
            _read_refusal(secured)
            return judged
    except ssl.SSLCertVerificationError as error:
        return False, (
            f"the broker's certificate is not trusted: {error.verify_message}; see broker.tls_ca and broker.host"
        )
    except ssl.SSLError as error:
        if "ALERT" in (error.reason or ""):
            return False, _connection_error(broker, error)
        return False, f"no TLS is spoken at {broker}: {error}; is it the broker's TLS port?"
    except OSError as error:
        return False, f"no TLS is spoken at {broker}: {error}; is it the broker's TLS port?"


def _read_refusal(secured: ssl.SSLSocket) -> None:
    """Listen for a moment: in TLS 1.3 a client's certificate is refused only after the greeting."""
    secured.settimeout(_REFUSAL_TIMEOUT_S)
    with suppress(TimeoutError):  # a broker that says nothing waits for us to speak
        secured.recv(1)


def _certificate_result(secured: ssl.SSLSocket) -> tuple[bool | None, str]:
    shown = secured.getpeercert() or {}
    end = datetime.fromtimestamp(ssl.cert_time_to_seconds(str(shown["notAfter"])), UTC)
    words = f"{secured.version()}, the broker's certificate is good until {end:%Y-%m-%d}"
    if end - datetime.now(UTC) < _EXPIRY_WARNING:
        return None, f"{words}: renew it soon"
    return True, words


def _connection_error(broker: BrokerConfig, error: ssl.SSLError) -> str:
    reason = (error.reason or "").replace("_", " ").lower()
    if broker.tls_cert is None:
        return f"the broker wants a certificate of us ({reason}); give broker.tls_cert and broker.tls_key"
    return f"the broker does not take our certificate {broker.tls_cert} ({reason}); is it of the right authority?"


def _tls_files_error(broker: BrokerConfig, error: OSError) -> str:
    for setting, path in (("tls_ca", broker.tls_ca), ("tls_cert", broker.tls_cert), ("tls_key", broker.tls_key)):
        if path is not None and not path.exists():
            return f"there is no file {path}; correct broker.{setting}"
    return f"the certificates cannot be used: {error.strerror or error}; see broker.tls_ca, tls_cert and tls_key"


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
