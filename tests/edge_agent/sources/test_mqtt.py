"""JSON messages of the plant's broker: each stored before it is acknowledged."""

import gc
import json
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from edge_agent.errors import ConfigRejected
from edge_agent.settings import SourceKind
from edge_agent.sources import Context
from edge_agent.sources.mqtt import build, follow
from service.broker_access.certificates import Authority
from tests.conftest import Mosquitto, broker_in, free_port, wait_until
from tests.support.edge_process import EdgeProcess
from tests.support.source_run import SourceRun, source_settings
from wire.clock import PlantClock

FIELDS = {"code": "alarm.code", "time": "ts", "text": "alarm.text", "state": "alarm.active"}


class Plant:
    """A publisher of the plant."""

    def __init__(self, broker: Mosquitto) -> None:
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self.client.connect("127.0.0.1", broker.port)
        self.client.loop_start()

    def send(self, body: Any, topic: str = "padova/line1/filler/alarms", *, retain: bool = False) -> None:
        payload = body if isinstance(body, bytes) else json.dumps(body)
        self.client.publish(topic, payload, qos=1, retain=retain).wait_for_publish(10)

    def alarm(self, code: Any, *, active: bool = True, **more: Any) -> None:
        self.send({"ts": "2026-11-16T08:00:00Z", "alarm": {"code": code, "active": active}}, **more)

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


@pytest.fixture
def plant(mosquitto: Mosquitto) -> Iterator[Plant]:
    made = Plant(mosquitto)
    yield made
    made.close()


@pytest.fixture
def run(tmp_path: Path, mosquitto: Mosquitto) -> Iterator[Callable[..., SourceRun]]:
    runs: list[SourceRun] = []

    def start(**options: Any) -> SourceRun:
        for before in runs:
            before.close()
        table = {
            "url": f"mqtt://127.0.0.1:{mosquitto.port}",
            "topics": ["padova/line1/+/alarms"],
            "client_id": "alarmcast-filler-1",
            **(options or FIELDS),
        }
        runs[:] = [SourceRun(tmp_path, source_settings(SourceKind.MQTT, table))]
        subscribed = "Received SUBSCRIBE"
        log = mosquitto.folder / "mosquitto.log"
        runs[0].until(lambda _: log.read_text().count(subscribed) >= starts[0], "the source has subscribed")
        starts[0] += 1
        return runs[0]

    starts = [1]
    mosquitto.kill()
    mosquitto.extra += "log_type all\n"
    mosquitto.start()
    yield start
    for one in runs:
        one.close()


def test_messages_are_raised_and_cleared(run: Any, plant: Plant) -> None:
    found = run()
    plant.alarm(139)
    plant.alarm("F7")
    plant.alarm(139, active=False)
    found.until_raised(139, 0)
    found.until(lambda run: run.cleared == [139], "it is cleared")
    assert [code.name for code in found.spool.codes()] == ["F7"]
    assert found.events[0].at.isoformat() == "2026-11-16T08:00:00+00:00"


def test_what_is_sent_while_the_agent_is_stopped_is_read_later(run: Any, plant: Plant) -> None:
    run().stop()
    for code in range(1, 301):
        plant.alarm(code)
    found = run()
    plant.alarm(301)
    found.until(lambda run: run.spool.depth().events == 301, "all alarms are stored")
    assert (found.raised, found.gaps) == (list(range(1, 302)), [])


def test_broker_that_forgot_the_session_is_a_gap(run: Any, mosquitto: Mosquitto, plant: Plant) -> None:
    found = run()
    plant.alarm(139)
    found.until_raised(139)
    mosquitto.kill()
    found.until(lambda run: "Cannot read mqtt://127.0.0.1" in run.warning, "there is a warning")
    (mosquitto.folder / "mosquitto.db").unlink(missing_ok=True)
    mosquitto.start()
    found.until(lambda run: run.gaps, "there is a gap")
    assert found.raised == [139]


def test_unreadable_messages_are_counted_and_retained_ones_ignored(run: Any, plant: Plant) -> None:
    plant.alarm(1, retain=True)
    found = run()
    plant.send(b"\xff")
    plant.send({"alarm": {"code": {"a": 1}, "active": True}, "ts": "2026-11-16T08:00:00Z"})
    plant.alarm(139)
    found.until_raised(139)
    assert (found.raised, found.spool.skipped) == ([139], 2)


def test_list_of_alarms_and_levels_of_the_topic(run: Any, plant: Plant) -> None:
    found = run(code="$topic.2", items="list")
    plant.send({"list": [{}, {}]})
    found.until_raised(0, 0)
    assert [code.name for code in found.spool.codes()] == ["filler"]


def test_path_follows_members_and_positions() -> None:
    body = {"a": [{"b": 1}]}
    assert (follow(body, "a.0.b"), follow(body, "a.1.b"), follow(body, "a.b"), follow(body, "c")) == (
        1,
        None,
        None,
        None,
    )


def test_doctor_checks_the_broker(mosquitto: Mosquitto) -> None:
    def check(port: int) -> bool | None:
        table = {"url": f"mqtt://127.0.0.1:{port}", "topics": ["x"], "client_id": "a", "code": "c"}
        (finding,) = build(table, Context(PlantClock())).check()
        return finding.ok

    assert (check(mosquitto.port), check(free_port())) == (True, False)


def test_mistake_in_the_table_is_one_sentence() -> None:
    with pytest.raises(ConfigRejected, match=r"mqtt\.topics is missing"):
        build({"url": "mqtt://broker", "code": "c", "client_id": "a"}, Context(PlantClock()))
    table = {"url": "mqtts://broker", "code": "c", "client_id": "a", "topics": ["x"], "tls_ca": "none.pem"}
    with pytest.raises(ConfigRejected, match=r"There is no file none\.pem; correct tls_ca"):
        build(table, Context(PlantClock()))


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_thousands_of_messages_in_flight_are_stored_once_though_the_agent_is_killed(
    tmp_path: Path, mosquitto: Mosquitto, plant: Plant, version: str
) -> None:
    table = {"url": f"mqtt://127.0.0.1:{mosquitto.port}", "client_id": "a", "topics": ["alarms"], "code": "code"}
    agent = EdgeProcess(tmp_path, SourceKind.MQTT, table | {"version": version})
    codes = [1 + number // 10 for number in range(5000)] + [9999]  # equal messages are not the same message

    def is_read() -> bool:
        plant.send({"code": 0}, "alarms")
        return agent.stored() > 0

    try:
        agent.start()
        wait_until(is_read, "the agent has subscribed")
        for code in codes:
            plant.client.publish("alarms", json.dumps({"code": code}), qos=1)
        for count in (100, 2500):
            agent.until_stored(count)
            agent.kill()
            agent.start()
        wait_until(lambda: agent.has(codes[-1]), "all messages are stored")
    finally:
        agent.kill()
    assert [event.code for event in agent.content()[0] if event.code] == codes


@pytest.mark.parametrize("kind", [SourceKind.MQTT, SourceKind.SPARKPLUG])
def test_broker_with_a_certificate_of_another_authority_is_not_read(tmp_path: Path, kind: SourceKind) -> None:
    for name in ("ours", "other"):
        Authority(tmp_path / name, datetime.now(UTC)).create(hosts=["localhost"], clients=[])
    broker = broker_in(tmp_path / "mosquitto")
    files = {"cafile": "ca.pem", "certfile": "broker.pem", "keyfile": "broker.key"}
    broker.extra += "".join(f"{name} {tmp_path / 'other' / file}\n" for name, file in files.items())
    broker.start()
    table: dict[str, Any] = {"url": f"mqtts://localhost:{broker.port}"}
    if kind is SourceKind.MQTT:
        table |= {"client_id": "a", "topics": ["alarms"], "code": "code"}
    else:
        signal = {"as": "code", "metric": "Code"}
        table |= {"group": "g", "edge_node": "n", "host_id": "a", "signals": [signal]}

    def until(authority: str, condition: Any) -> None:
        settings = source_settings(kind, table | {"tls_ca": str(tmp_path / authority / "ca.pem")})
        SourceRun(tmp_path / authority, settings).until(condition, "it is refused, or read").close()

    def is_connected() -> bool:
        return " as a (" in (broker.folder / "mosquitto.log").read_text()

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # paho leaves the socket of a failed handshake open
            until("ours", lambda run: "Cannot read mqtt" in run.warning)
            gc.collect()
        assert not is_connected()
        until("other", lambda _: is_connected())
    finally:
        broker.kill()
