"""The port of the API, and the server on it."""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from service.app.connection_limits import (
    WEBSOCKET_MESSAGE_BYTES,
    Acceptor,
    ConnectionLimits,
    TidyWebSocket,
    TimedHttp,
)
from service.errors import InputRejected
from service.settings import Settings


def listen(host: str, port: int) -> socket.socket:
    """Bind the API's port, or say in a sentence that it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named, because asyncio sets TCP_NODELAY only then; without it every answer waits 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise InputRejected(
            f"Cannot listen on {host}:{port}: {error.strerror}. Choose another address or port: --host, --port."
        ) from None
    return listener


def require_tls(settings: Settings) -> None:
    """Refuse to send passwords and keys unencrypted over a network, unless the settings allow it."""
    if settings.tls_cert is not None or settings.allow_plain_http or is_loopback(settings.host):
        return
    raise InputRejected(
        f"On {settings.host} passwords and keys would cross the network unencrypted. Give it a "
        "certificate (alarmcast admin tls-init, then tls_cert and tls_key), listen on 127.0.0.1 behind a proxy "
        "that speaks TLS, or, where something else encrypts, say so: ALARMCAST_ALLOW_PLAIN_HTTP=true."
    )


def is_loopback(host: str) -> bool:
    """Say whether only this computer can reach what listens on ``host``."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = {str(address[4][0]) for address in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return False
    return bool(found) and all(ipaddress.ip_address(one.partition("%")[0]).is_loopback for one in found)


def server_config(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    """Return uvicorn's configuration; only trusted proxies may set the client address."""
    proxies = trusted_proxies(settings)
    return uvicorn.Config(
        app,
        http=TimedHttp,
        ws=TidyWebSocket,
        ws_max_size=WEBSOCKET_MESSAGE_BYTES,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies,
        **tls_options(settings),
    )


def trusted_proxies(settings: Settings) -> list[str]:
    """Return the addresses and networks of proxies that are trusted."""
    return [one.strip() for one in settings.trusted_proxies.split(",") if one.strip()]


def url_of(listener: socket.socket, *, tls: bool = False) -> str:
    """Return the address at which a bound socket is reached."""
    host, port = listener.getsockname()[:2]
    named = f"[{host}]" if ":" in host else host
    return f"{'https' if tls else 'http'}://{named}:{port}"


def tls_options(settings: Settings) -> dict[str, Any]:
    """Return what lets uvicorn speak TLS, or say in a sentence why the files cannot be used."""
    if settings.tls_cert is None or settings.tls_key is None:
        return {}
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_cert, settings.tls_key)
    except OSError as error:  # ssl.SSLError is one too
        raise InputRejected(
            f"The API's certificate cannot be used: {error.strerror or error}. See tls_cert and tls_key."
        ) from None
    return {"ssl_certfile": settings.tls_cert, "ssl_keyfile": settings.tls_key}


class Server(uvicorn.Server):
    """A server with limits of its connections; it ends streams before it waits for answers under way.

    A stream would never be one of them.
    """

    def __init__(
        self, config: uvicorn.Config, *, ending: Callable[[], None], limits: ConnectionLimits | None = None
    ) -> None:
        super().__init__(config)
        self._ending = ending
        self._limits = limits or ConnectionLimits()
        self.acceptor: Acceptor | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start as uvicorn does, but accept connections here, so that they can be counted."""
        listeners = sockets or []
        for listener in listeners:  # first: clients may connect once it has started
            listener.listen(self.config.backlog)
        await super().startup(sockets=[])
        if not self.should_exit:
            self.acceptor = Acceptor(self.config, self._limits, self._protocol, self.server_state.connections)
            self.acceptor.start(listeners)

    async def on_tick(self, counter: int) -> bool:
        """Look once a second for connections whose requests do not arrive."""
        if counter % 10 == 0 and self.acceptor is not None:
            self.acceptor.end_overdue()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Say that it ends, then end as uvicorn does."""
        self._ending()
        if self.acceptor is not None:
            await self.acceptor.stop()
        await super().shutdown(sockets)

    def _protocol(self) -> asyncio.Protocol:
        made = self.config.http_protocol_class(  # type: ignore[call-arg]  # as uvicorn itself makes one
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        if isinstance(made, TimedHttp):
            made.limits = self._limits
        return made
