"""Check name, network and TLS of the broker; used by ``alarmcast-edge doctor`` and ``config check``."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from wire.mqtt import BrokerConfig

_TIMEOUT_S = 5.0
_REFUSAL_TIMEOUT_S = 0.5  # in which a broker that rejects our certificate reports it
_EXPIRY_WARNING = timedelta(days=30)


@dataclass(frozen=True)
class Finding:
    """The result of one check; ``ok`` is None for a warning."""

    check: str
    ok: bool | None
    message: str


def check_broker(broker: BrokerConfig, *, settings_prefix: str, tls_hint: str) -> Iterator[Finding]:
    """Check name, network and TLS, and stop at the first that fails.

    Messages name settings with ``settings_prefix``; ``tls_hint`` is the message for a TLS port without TLS.
    """
    try:
        addresses = socket.getaddrinfo(broker.host, broker.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        message = f"no address is known for {broker.host}: {error}; correct {settings_prefix}host or the DNS"
        yield Finding("name", ok=False, message=message)
        return
    ips = sorted({str(address[4][0]) for address in addresses})
    yield Finding("name", ok=True, message=f"{broker.host} is {', '.join(ips)}")
    try:
        socket.create_connection((broker.host, broker.port), timeout=_TIMEOUT_S).close()
    except OSError as error:
        message = f"no answer from {broker}: {error}; is the broker running, does a firewall block the port?"
        yield Finding("network", ok=False, message=message)
        return
    yield Finding("network", ok=True, message=f"{broker} answers")
    if broker.tls:
        yield check_tls(broker, settings_prefix=settings_prefix)
    elif speaks_tls(broker.host, broker.port):
        yield Finding("TLS", ok=False, message=tls_hint)
    elif all(ip_address(ip).is_loopback for ip in ips):
        yield Finding("TLS", ok=True, message="not used")
    else:
        yield Finding("TLS", ok=None, message="not used: anyone on the network path can read and change alarms")


def check_tls(broker: BrokerConfig, *, settings_prefix: str) -> Finding:
    """Do a TLS handshake with the broker and check both certificates."""
    try:
        ok, message = _handshake(broker, settings_prefix)
    except ssl.SSLCertVerificationError as error:
        see = f"see {settings_prefix}tls_ca and {settings_prefix}host"
        ok, message = False, f"the broker's certificate is not trusted: {error.verify_message}; {see}"
    except OSError as error:  # ssl.SSLError is one too
        reason = getattr(error, "reason", None) or ""
        if "ALERT" in reason:
            ok, message = False, _client_certificate_error(broker, reason, settings_prefix)
        else:
            ok, message = False, f"the TLS handshake with {broker} failed: {error}; is it the broker's TLS port?"
    return Finding("TLS", ok=ok, message=message)


def tls_context(broker: BrokerConfig) -> ssl.SSLContext:
    """Return the trusted authorities and our own certificate; ``OSError`` if a file cannot be used."""
    context = ssl.create_default_context(cafile=broker.tls_ca, cadata=broker.tls_ca_pem)
    if broker.tls_cert is not None:
        context.load_cert_chain(broker.tls_cert, broker.tls_key)
    return context


def speaks_tls(host: str, port: int, *, seconds: float = 2.0) -> bool:
    """Return whether a port speaks TLS: the handshake succeeds or is refused by a TLS alert; trusts no one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((host, port), timeout=seconds) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return True
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    except (OSError, ValueError):
        return False


def _handshake(broker: BrokerConfig, settings_prefix: str) -> tuple[bool | None, str]:
    try:
        context = tls_context(broker)
    except OSError as error:
        return False, _tls_files_error(broker, error, settings_prefix)
    with (
        socket.create_connection((broker.host, broker.port), timeout=_TIMEOUT_S) as plain,
        context.wrap_socket(plain, server_hostname=broker.host) as secured,
    ):
        certificate = secured.getpeercert() or {}
        end = datetime.fromtimestamp(ssl.cert_time_to_seconds(str(certificate["notAfter"])), UTC)
        message = f"{secured.version()}, the broker's certificate is valid until {end:%Y-%m-%d}"
        # In TLS 1.3 a client certificate is refused only after the handshake.
        secured.settimeout(_REFUSAL_TIMEOUT_S)
        with suppress(TimeoutError):
            secured.recv(1)
    if end - datetime.now(UTC) < _EXPIRY_WARNING:
        return None, f"{message}: renew it soon"
    return True, message


def _client_certificate_error(broker: BrokerConfig, reason: str, prefix: str) -> str:
    alert = reason.replace("_", " ").lower()
    if broker.tls_cert is None:
        return f"the broker requires a client certificate ({alert}); give {prefix}tls_cert and {prefix}tls_key"
    return f"the broker rejects our certificate {broker.tls_cert} ({alert}); was it signed by the right authority?"


def _tls_files_error(broker: BrokerConfig, error: OSError, prefix: str) -> str:
    for setting, path in (("tls_ca", broker.tls_ca), ("tls_cert", broker.tls_cert), ("tls_key", broker.tls_key)):
        if path is not None and not path.exists():
            return f"there is no file {path}; correct {prefix}{setting}"
    names = ", ".join(f"{prefix}{name}" for name in ("tls_ca", "tls_cert", "tls_key"))
    return f"the certificates cannot be used: {error.strerror or error}; see {names}"
