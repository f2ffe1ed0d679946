"""Paho's socket, read ahead: paho asks for a message in three pieces, and each would be a call of the kernel.

Every such call also lets go of the interpreter's lock, which the thread that commits is waiting for.
"""

import socket
import ssl
from typing import Any

from service.broker.polling import PollingClient

_AHEAD = 1 << 16  # bytes


class BufferedSocket:
    """A socket that takes all there is and hands it out in pieces; paho asks ``pending`` as it does of TLS."""

    def __init__(self, plain: socket.socket) -> None:
        self._plain = plain
        self._ahead, self._given = b"", 0

    def recv(self, size: int) -> bytes:
        """Return the next bytes; raises, like a socket's, where none have come, and is empty at the end."""
        if self._given == len(self._ahead):
            self._ahead, self._given = self._plain.recv(max(size, _AHEAD)), 0
        piece = self._ahead[self._given : self._given + size]
        self._given += len(piece)
        return piece

    def pending(self) -> int:
        """Return how many bytes are here that the kernel no longer knows of."""
        return len(self._ahead) - self._given

    def __getattr__(self, name: str) -> Any:
        """Do everything else as the socket does it."""
        return getattr(self._plain, name)


class Client(PollingClient):
    """Paho's client over such a socket; TLS reads ahead by itself."""

    def _create_socket(self) -> Any:
        made = super()._create_socket()
        return (
            BufferedSocket(made)
            if isinstance(made, socket.socket) and not isinstance(made, ssl.SSLSocket)
            else made
        )
