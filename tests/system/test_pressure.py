"""Too much at once: memory stays flat, others get through, and a broker that drops is noticed."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import paho.mqtt.client as mqtt
import psutil
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from tests.conftest import wait_until
from tests.faults.databases import held
from tests.system.conftest import Plant, write_alarms
from wire.timestamps import isoformat

CALM, FLOOD = "padova/calm", "padova/flood"


@contextmanager
def client(plant: Plant) -> Iterator[mqtt.Client]:
    sender = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
    sender.connect("127.0.0.1", plant.broker.port)
    sender.loop_start()
    yield sender
    sender.disconnect()
    sender.loop_stop()


def flood(plant: Plant, messages: int, events: int) -> None:
    """Publish like an agent that does not wait for acks."""
    epoch, at = uuid4(), isoformat(datetime.now(UTC))
    with client(plant) as sender:
        for number in range(messages):
            seqs = range(number * events + 1, (number + 1) * events + 1)
            batch = ",".join(f'{{"seq":{seq},"code":1,"at":"{at}"}}' for seq in seqs)  # models cost ten times more
            body = f'{{"epoch":"{epoch}","events":[{batch}]}}'
            told = sender.publish(f"alarmcast/v1/{FLOOD}/events", body, 1)
            if number % 200 == 0:
                told.wait_for_publish(60)
        told.wait_for_publish(60)


def resident(plant: Plant) -> int:
    assert plant.service.running
    return int(psutil.Process(plant.service.running.pid).memory_info().rss)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_a_flood_that_cannot_be_stored_neither_fills_the_memory_nor_keeps_others_out(
    plant: Plant, tmp_path: Path, version: str
) -> None:
    plant.service.environment = {"ALARMCAST_BROKER_MQTT_VERSION": version}
    plant.start_service()
    for machine in (CALM, FLOOD):
        plant.enrol(machine)
    log = tmp_path / "calm.jsonl"
    plant.agent(CALM, log).start()
    write_alarms(log, 0, 5)
    wait_until(lambda: len(plant.stored(CALM)) == 5, "the calm machine is heard")
    before = resident(plant)
    with held(plant.data / "alarmcast.sqlite3"):
        flood(plant, messages=3500, events=500)
        wait_until(lambda: plant.api.health.status().counts["rejected"] > 0, "what does not fit is sent back")
        grown = resident(plant) - before
        assert grown < 80 << 20, f"95 MB were sent, and the service grew by {grown >> 20} MB"
        write_alarms(log, 5, 5)
        assert "flood" in plant.api.health.status().warnings["flood"]
    wait_until(
        lambda: plant.spooled(CALM) == 0 and len(plant.stored(CALM)) == 10, "the calm one gets through", 120
    )


def test_messages_that_the_broker_drops_are_noticed_and_sent_again(plant: Plant, tmp_path: Path) -> None:
    plant.broker.kill()
    plant.broker.extra += "max_queued_messages 5\nmax_inflight_messages 5\nsys_interval 1\n"
    plant.broker.start()
    plant.service.environment = {"ALARMCAST_INGEST_RECEIVE_MAXIMUM": "5"}
    plant.start_service()
    plant.enrol(CALM)
    wait_until(plant.is_ready, "the service is ready")
    wait_until(lambda: "broker_dropped" in plant.api.health.status().counts, "the broker's counters are seen")
    running = plant.service.running
    assert running
    log = tmp_path / "calm.jsonl"
    plant.agent(CALM, log).start()
    write_alarms(log, 0, 5)
    wait_until(lambda: plant.spooled(CALM) == 0, "the machine is heard")
    running.send_signal(signal.SIGSTOP)
    try:
        flood(plant, messages=100, events=1)
        write_alarms(log, 5, 20)
        wait_until(lambda: plant.given(CALM) == 25, "what is raised is spooled")
    finally:
        running.send_signal(signal.SIGCONT)
    wait_until(lambda: "broker_dropped" in plant.api.health.status().warnings, "drops are told", 60)
    wait_until(lambda: len(plant.stored(CALM)) == 25, "what was dropped is sent again", 60)
