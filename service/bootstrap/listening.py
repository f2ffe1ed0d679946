"""The port of the API, and the server on it."""

import socket
import ssl
from collections.abc import Callable
from typing import Any

import uvicorn

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
    """A server that ends streams before it waits for answers under way: a stream would never be one of them."""

    def __init__(self, config: uvicorn.Config, *, ending: Callable[[], None]) -> None:
        super().__init__(config)
        self._ending = ending

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Say that it ends, then end as uvicorn does."""
        self._ending()
        await super().shutdown(sockets)
