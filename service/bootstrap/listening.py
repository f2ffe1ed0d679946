"""The port of the API, and the server on it."""

import socket
from collections.abc import Callable

import uvicorn

from service.errors import InputRejected


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
