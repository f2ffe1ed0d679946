"""Sparkplug B: a host application that follows an edge node over a real broker."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from edge_agent.settings import SourceKind
from edge_agent.sources.sparkplug_payload import Payload
from tests.conftest import Mosquitto, wait_until
from tests.support.source_run import SourceRun, source_settings
from tests.support.sparkplug_node import SparkplugNode

SIGNALS: list[dict[str, Any]] = [
    {"as": "flag", "device": "filler", "metric": "Alarms/Jam", "code": 7},
    {"as": "code", "device": "filler", "metric": "Alarms/Code"},
    {"as": "bits", "metric": "Word", "code": 100},
]


@pytest.fixture
def node(mosquitto: Mosquitto) -> Iterator[SparkplugNode]:
    made = SparkplugNode(mosquitto)
    yield made
    made.close()


@pytest.fixture
def run(tmp_path: Path, mosquitto: Mosquitto, node: SparkplugNode) -> Iterator[Callable[[], SourceRun]]:
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


def test_metrics_are_raised_and_cleared_by_alias(run: Any, node: SparkplugNode) -> None:
    found = run()
    node.data(jam=True)
    found.until_raised(7)
    node.data(code=139)
    node.set_word(0b101)
    found.until_raised(7, 139, 100, 102)
    node.data(jam=False)
    found.until(lambda run: run.cleared == [7], "it is cleared")
    assert found.raised == [7, 139, 100, 102]


def test_host_is_online_and_offline_with_the_same_time(run: Any, node: SparkplugNode) -> None:
    found = run()
    wait_until(lambda: b"true" in node.state, "the host is online")
    online = json.loads(node.state)
    found.stop()
    wait_until(lambda: b"false" in node.state, "the host is offline")
    assert json.loads(node.state) == {"online": False, "timestamp": online["timestamp"]}


def test_messages_in_the_wrong_order_are_sorted(run: Any, node: SparkplugNode) -> None:
    found = run()
    births = node.births
    node.swap_two(1, 2)
    node.data(code=3)
    found.until_raised(1, 2, 3)
    assert (found.raised, node.births) == ([1, 2, 3], births)


def test_missing_message_is_a_rebirth_and_a_gap(run: Any, node: SparkplugNode) -> None:
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


def test_death_is_matched_to_its_birth(run: Any, node: SparkplugNode) -> None:
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


def test_restart_of_the_agent_does_not_raise_active_alarms_again(run: Any, node: SparkplugNode) -> None:
    found = run()
    node.data(code=1)
    found.until_raised(1)
    second = run()
    node.data(jam=True)
    second.until_raised(1, 7)
    assert (second.raised, len(second.gaps)) == ([1, 7], 1)
