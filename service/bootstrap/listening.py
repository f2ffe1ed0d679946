"""The port of the API, and the server on it."""

import socket
from collections.abc import Callable
from ipaddress import ip_address

import uvicorn
from starlette.types import ASGIApp

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


def insist_on_privacy(settings: Settings) -> None:
    """Refuse to send passwords and keys over a network that anybody may listen to, unless told to."""
    if settings.allow_plain_http or _is_loopback(settings.host):
        return
    raise InputRejected(
        f"On {settings.host} passwords and keys would cross the network unencrypted. Listen on 127.0.0.1 behind a "
        "proxy that speaks TLS, or, where something else encrypts, say so: ALARMCAST_ALLOW_PLAIN_HTTP=true."
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def server_config(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    """Return how the server listens; where a request is from is only told by proxies that are trusted."""
    proxies = [one.strip() for one in settings.trusted_proxies.split(",") if one.strip()]
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies,
    )


def url_of(listener: socket.socket) -> str:
    """Return the address at which a bound socket is reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Server(uvicorn.Server):
    """A server that ends streams before it waits for answers under way: a stream would never be one of them."""

    def __init__(self, config: uvicorn.Config, *, ending: Callable[[], None]) -> None:
        super().__init__(config)
        self._ending = ending

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Say that it ends, then end as uvicorn does."""
        self._ending()
        await super().shutdown(sockets)
