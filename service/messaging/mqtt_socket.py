"""Paho's client with a network loop on ``poll``: paho's own uses ``select``, which fails above 1,024 files."""

import select
import socket
import ssl
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import MQTTErrorCode, _ConnectionState

_HAS_POLL = hasattr(select, "poll")  # Windows has none; its select has no such limit on file numbers
_BUFFER = 10_000  # bytes that ask the loop to write; each is one call of publish and the like


class PollingClient(mqtt.Client):
    """A client that connects however many files the process has open."""

    def _loop(self, timeout: float = 1.0) -> MQTTErrorCode:
        """Wait for the broker or for something to send, and do what there is to do once, as paho's loop does."""
        connection, wakeup = self._sock, self._sockpairR
        if not _HAS_POLL or connection is None:
            return super()._loop(timeout)
        pending = connection.pending() if hasattr(connection, "pending") else 0
        poll = select.poll()
        try:
            number = connection.fileno()
            poll.register(number, select.POLLIN | (select.POLLOUT if self.want_write() else 0))
            if wakeup is not None:
                poll.register(wakeup, select.POLLIN)
            ready = dict(poll.poll(0 if pending else timeout * 1000))
        except (TypeError, ValueError, OSError):  # the socket was closed meanwhile
            return self._lost()
        if ready.get(number, 0) & select.POLLNVAL:
            return self._lost()
        # An error or a hang-up counts as readable: reading tells paho what it is.
        if pending or ready.get(number, 0) & ~select.POLLOUT:
            result = self.loop_read()
            if result or self._sock is None:
                return result
        has_output = ready.get(number, 0) & select.POLLOUT
        if wakeup is not None and wakeup.fileno() in ready:
            self._clear_wakeup()
            has_output = True
        if has_output:
            result = self.loop_write()
            if result or self._sock is None:
                return result
        return self.loop_misc()

    def _lost(self) -> MQTTErrorCode:
        if self._state not in (_ConnectionState.MQTT_CS_DISCONNECTING, _ConnectionState.MQTT_CS_DISCONNECTED):
            self._state = _ConnectionState.MQTT_CS_CONNECTION_LOST
        return MQTTErrorCode.MQTT_ERR_CONN_LOST

    def _clear_wakeup(self) -> None:
        try:
            if self._sockpairR is not None:
                self._sockpairR.recv(_BUFFER)
        except BlockingIOError:
            pass


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
