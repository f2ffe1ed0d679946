"""A listener at the broker: what an agent would see, with the moment at which it saw it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from benchmarks.servers import HOST, wait_until
from wire.acks import Ack
from wire.codec import decode


class Listener:
    """Subscribed at QoS 1; messages wait with the monotonic time of their arrival."""

    def __init__(self, client: mqtt.Client) -> None:
        self.client = client
        self._arrived: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
        client.on_message = self._on_message

    def next(self, seconds: float) -> tuple[float, bytes]:
        """Return when the next message came and what it says; raise if none does in time."""
        try:
            return self._arrived.get(timeout=seconds)
        except Empty:
            raise TimeoutError(f"no message came within {seconds:.0f} s") from None

    def until_acked(self, events: int, seconds: float) -> float:
        """Wait until acks name so many events, none of them twice, and return when the last of them came."""
        deadline = time.monotonic() + seconds
        named: set[tuple[object, int, int]] = set()
        total = 0
        while total < events:
            at, payload = self.next(max(0.0, deadline - time.monotonic()))
            ack = decode(Ack, payload)
            for first, last in ack.seqs:
                if (ack.epoch, first, last) not in named:
                    named.add((ack.epoch, first, last))
                    total += last - first + 1
        return at

    def _on_message(self, _client: mqtt.Client, _data: Any, message: mqtt.MQTTMessage) -> None:
        self._arrived.put((time.monotonic(), bytes(message.payload)))


@contextmanager
def listening(port: int, topics: str) -> Iterator[Listener]:
    """Listen to topics until done."""
    subscribed: list[object] = []
    client = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
    client.on_subscribe = lambda *details: subscribed.append(details)
    listener = Listener(client)
    client.connect(HOST, port)
    client.subscribe(topics, qos=1)
    client.loop_start()
    try:
        wait_until(lambda: subscribed, "the broker has taken a subscription", 20)
        yield listener
    finally:
        client.disconnect()
        client.loop_stop()
