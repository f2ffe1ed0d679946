"""Paho's client with a network loop on ``poll``: paho's own uses ``select``, which fails above 1,024 files."""

import select

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
