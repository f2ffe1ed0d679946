"""Sparkplug B: a host application that follows an edge node over a real broker."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from edge_agent.settings import SourceKind
from edge_agent.sources.sparkplug_payload import BOOLEAN, Payload
from tests.conftest import Mosquitto, wait_until
from tests.support.source_run import SourceRun, source_settings

SIGNALS: list[dict[str, Any]] = [
    {"as": "flag", "device": "filler", "metric": "Alarms/Jam", "code": 7},
    {"as": "code", "device": "filler", "metric": "Alarms/Code"},
    {"as": "bits", "metric": "Word", "code": 100},
]


class Node:
    """An edge node with one device; it answers a request for rebirth."""

    def __init__(self, broker: Mosquitto) -> None:
        self.jam, self.code, self.word = False, 0, 0
        self.births, self.state = 0, b""
        self._seq, self._number = 0, 0
        self.online = Event()
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2)
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

    def birth(self) -> None:
        self._seq, self._number, self.births = 0, self._number + 1, self.births + 1
        node = self._payload()
        node.metrics.add(name="bdSeq", datatype=8, long_value=self._number)
        node.metrics.add(name="Word", alias=1, datatype=6, int_value=self.word)
        self._send("NBIRTH", node)
        device = self._payload()
        device.metrics.add(name="Alarms/Jam", alias=2, datatype=BOOLEAN, boolean_value=self.jam)
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


@pytest.fixture
def node(mosquitto: Mosquitto) -> Iterator[Node]:
    made = Node(mosquitto)
    yield made
    made.close()


@pytest.fixture
def run(tmp_path: Path, mosquitto: Mosquitto, node: Node) -> Iterator[Callable[[], SourceRun]]:
    runs: list[SourceRun] = []

    def start() -> SourceRun:
        for before in runs:
            before.close()
        table = {
            "url": f"mqtt://127.0.0.1:{mosquitto.port}",
            "group": "plant",
            "edge_node": "node",
            "host_id": "host",
            "reorder_seconds": 0.3,
            "signals": SIGNALS,
        }
        births = node.births
        runs[:] = [SourceRun(tmp_path, source_settings(SourceKind.SPARKPLUG, table))]
        runs[0].until(lambda _: node.births > births, "the host has asked for births")
        return runs[0]

    yield start
    for one in runs:
        one.close()


def test_payload_has_the_field_numbers_of_the_specification() -> None:
    payload = Payload(timestamp=1, seq=2)
    payload.metrics.add(name="a", alias=3, timestamp=4, datatype=11, boolean_value=True)
    metric = bytes([0x0A, 1, ord("a"), 0x10, 3, 0x18, 4, 0x20, 11, 0x70, 1])
    assert payload.SerializeToString() == bytes([0x08, 1, 0x12, len(metric)]) + metric + bytes([0x18, 2])


def test_metrics_are_raised_and_cleared_by_alias(run: Any, node: Node) -> None:
    found = run()
    node.data(jam=True)
    found.until_raised(7)
    node.data(code=139)
    node.set_word(0b101)
    found.until_raised(7, 139, 100, 102)
    node.data(jam=False)
    found.until(lambda run: run.cleared == [7], "it is cleared")
    assert found.raised == [7, 139, 100, 102]


def test_host_is_online_and_offline_with_the_same_time(run: Any, node: Node) -> None:
    found = run()
    wait_until(lambda: b"true" in node.state, "the host is online")
    online = json.loads(node.state)
    found.stop()
    wait_until(lambda: b"false" in node.state, "the host is offline")
    assert json.loads(node.state) == {"online": False, "timestamp": online["timestamp"]}


def test_messages_in_the_wrong_order_are_sorted(run: Any, node: Node) -> None:
    found = run()
    births = node.births
    node.swap_two(1, 2)
    node.data(code=3)
    found.until_raised(1, 2, 3)
    assert (found.raised, node.births) == ([1, 2, 3], births)


def test_missing_message_is_a_rebirth_and_a_gap(run: Any, node: Node) -> None:
    found = run()
    node.data(code=1)
    found.until_raised(1)
    births = node.births
    node.skip()
    node.data(code=2)
    found.until(lambda _: node.births > births, "the host has asked for births again")
    found.until_raised(1, 2)
    found.until(lambda run: run.gaps, "there is a gap")
    assert found.raised == [1, 2]


def test_death_is_matched_to_its_birth(run: Any, node: Node) -> None:
    found = run()
    node.data(code=1)
    found.until_raised(1)
    node.death(number=0)  # of an earlier session
    node.data(code=2)
    found.until_raised(1, 2)
    assert found.spool.skipped == 0
    node.death()
    found.until(lambda run: run.spool.skipped == 3, "all signals are offline")
    node.birth()
    node.data(code=3)
    found.until_raised(1, 2, 3)
    assert found.raised == [1, 2, 3]
    assert found.gaps


def test_restart_of_the_agent_does_not_raise_active_alarms_again(run: Any, node: Node) -> None:
    found = run()
    node.data(code=1)
    found.until_raised(1)
    second = run()
    node.data(jam=True)
    second.until_raised(1, 7)
    assert (second.raised, len(second.gaps)) == ([1, 7], 1)


def test_broker_that_goes_away_is_a_warning_and_a_gap(run: Any, node: Node, mosquitto: Mosquitto) -> None:
    found = run()
    node.data(code=1)
    found.until_raised(1)
    mosquitto.kill()
    found.until(lambda run: "Cannot read mqtt://127.0.0.1" in run.warning, "there is a warning")
    births = node.births
    mosquitto.start()
    found.until(lambda _: node.births > births, "the host has asked for births again")
    node.data(code=2)
    found.until_raised(1, 2)
    assert found.raised == [1, 2]
    assert found.gaps
