"""A Sparkplug edge node over a real broker."""

import time
from threading import Event
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from edge_agent.sources.sparkplug_payload import BOOLEAN, Payload
from tests.conftest import Mosquitto


class SparkplugNode:
    """An edge node with one device; it answers a request for rebirth."""

    def __init__(self, broker: Mosquitto, username: str | None = None, password: str | None = None) -> None:
        self.jam, self.code, self.word = False, 0, 0
        self.births, self.state = 0, b""
        self._seq, self._number = 0, 0
        self.online = Event()
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self.client.username_pw_set(username, password)
        self.client.on_message = self._on_message
        self.client.on_connect = lambda client, *_: client.subscribe(
            [("spBv1.0/plant/NCMD/node", 1), ("spBv1.0/STATE/host", 1)]
        )
        self.client.on_subscribe = lambda *_: self.online.set()
        self.client.connect("127.0.0.1", broker.port)
        self.client.loop_start()
        assert self.online.wait(10)

    def _on_message(self, _client: Any, _data: Any, message: mqtt.MQTTMessage) -> None:
        if message.topic.endswith("STATE/host"):
            self.state = bytes(message.payload)
            return
        command = Payload()
        command.ParseFromString(bytes(message.payload))
        assert command.metrics[0].name == "Node Control/Rebirth"
        self.birth()

    def birth(self, *, with_code: bool = True) -> None:
        self._seq, self._number, self.births = 0, self._number + 1, self.births + 1
        node = self._payload()
        node.metrics.add(name="bdSeq", datatype=8, long_value=self._number)
        node.metrics.add(name="Word", alias=1, datatype=6, int_value=self.word)
        self._send("NBIRTH", node)
        device = self._payload()
        device.metrics.add(name="Alarms/Jam", alias=2, datatype=BOOLEAN, boolean_value=self.jam)
        if with_code:
            device.metrics.add(name="Alarms/Code", alias=3, datatype=7, int_value=self.code)
        self._send("DBIRTH", device, "/filler")

    def data(self, *, code: int | None = None, jam: bool | None = None) -> None:
        """Send a change of the device by alias."""
        payload = self._payload()
        if code is not None:
            self.code = code
            payload.metrics.add(alias=3, int_value=code)
        if jam is not None:
            self.jam = jam
            payload.metrics.add(alias=2, boolean_value=jam)
        self._send("DDATA", payload, "/filler")

    def set_word(self, word: int) -> None:
        self.word = word
        payload = self._payload()
        payload.metrics.add(alias=1, int_value=word)
        self._send("NDATA", payload)

    def swap_two(self, first: int, second: int) -> None:
        """Send two changes in the wrong order."""
        payloads = []
        for code in (first, second):
            payload = self._payload()
            payload.metrics.add(alias=3, int_value=code)
            payloads.append(payload)
        for payload in reversed(payloads):
            self._publish("DDATA", payload, "/filler")

    def skip(self) -> None:
        """Use a number without sending it."""
        self._payload()

    def death(self, number: int | None = None) -> None:
        payload = Payload(timestamp=round(time.time() * 1000))
        payload.metrics.add(name="bdSeq", datatype=8, long_value=self._number if number is None else number)
        self._publish("NDEATH", payload, "")

    def _payload(self) -> Any:
        payload = Payload(timestamp=round(time.time() * 1000), seq=self._seq)
        self._seq = (self._seq + 1) % 256
        return payload

    def _send(self, kind: str, payload: Any, device: str = "") -> None:
        self._publish(kind, payload, device)

    def _publish(self, kind: str, payload: Any, device: str) -> None:
        self.client.publish(f"spBv1.0/plant/{kind}/node{device}", payload.SerializeToString(), qos=0)

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()
