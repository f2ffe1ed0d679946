"""A first greeting with the broker over TLS, and in words what came of it."""

import socket
import ssl
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from edge_agent.link import BrokerConfig

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
