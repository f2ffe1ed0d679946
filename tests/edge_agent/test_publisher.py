"""The publisher at a real broker, with a test in the service's place: what it says, and whom it believes."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from edge_agent.publisher import Publisher
from edge_agent.spool import Spool
from edge_agent.spool_models import Appendix
from tests.conftest import Mosquitto, wait_until
from wire.acks import Ack
from wire.alarm import Alarm
from wire.clock import PlantClock
from wire.codec import decode, encode
from wire.events import EventBatch
from wire.identity import MachineId
from wire.mqtt import BrokerConfig
from wire.state import AgentState, Note
from wire.topics import Channel, topic

FILLER = MachineId("padova", "filler-1")
AT = datetime(2026, 11, 16, tzinfo=UTC)


class Central:
    """Takes what an agent publishes, and acks what it is told to."""

    def __init__(self, port: int) -> None:
        self.states: list[AgentState] = []
        self.batches: list[EventBatch] = []
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
        self._client.on_message = self._take
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        self._client.subscribe([(topic(FILLER, channel), 1) for channel in (Channel.EVENTS, Channel.STATE)])

    def _take(self, _client: mqtt.Client, _data: Any, message: mqtt.MQTTMessage) -> None:
        if message.topic.endswith("/state"):
            self.states.append(decode(AgentState, bytes(message.payload)))
        else:
            self.batches.append(decode(EventBatch, bytes(message.payload)))

    def ack(self, epoch: UUID, *seqs: tuple[int, int], instance: str | None, reused: bool = False) -> None:
        ack = Ack(epoch=epoch, seqs=list(seqs), now=datetime.now(UTC), instance=instance, reused=reused)
        self._client.publish(topic(FILLER, Channel.ACKS), encode(ack), qos=1)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@pytest.fixture
def central(mosquitto: Mosquitto) -> Iterator[Central]:
    central = Central(mosquitto.port)
    yield central
    central.close()


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    spool = Spool(tmp_path / "spool")
    yield spool
    spool.close()


@pytest.fixture
def publisher(mosquitto: Mosquitto, spool: Spool, central: Central) -> Iterator[Publisher]:
    assert central
    spool.append([Alarm(AT, code) for code in range(214)], "here")
    broker = BrokerConfig("127.0.0.1", mosquitto.port)
    publisher = Publisher(machine=FILLER, broker=broker, spool=spool, clock=PlantClock(), agent_version="1")
    publisher.start()
    yield publisher
    publisher.stop()


def test_the_state_says_soon_that_the_spool_is_empty_and_that_rows_were_skipped(
    publisher: Publisher, spool: Spool, central: Central
) -> None:
    wait_until(lambda: central.batches and central.states, "the backlog is sent")
    first = central.states[0]
    assert (first.spooled, first.skipped, first.instance) == (214, 0, publisher.instance)
    assert first.connected_at is not None
    central.ack(spool.epoch, (1, 214), instance=publisher.instance)
    wait_until(lambda: central.states[-1].spooled == 0, "that nothing waits is told before a heartbeat")
    spool.append([], "there", Appendix(skipped=2, last_skipped=Note(text="byte 7: wrong", at=AT)))
    wait_until(lambda: central.states[-1].skipped == 2, "and so are rows that could not be read")
    assert len(central.states) <= 5, "but not with every event"


def test_an_ack_for_another_process_of_the_same_spool_empties_nothing(
    publisher: Publisher, spool: Spool, central: Central
) -> None:
    wait_until(lambda: central.batches, "the backlog is sent")
    assert central.batches[0].instance == publisher.instance
    central.ack(spool.epoch, (1, 100), instance="another/1/abcd")
    central.ack(spool.epoch, (101, 101), instance=None)  # of a service that does not know of processes
    central.ack(spool.epoch, (102, 102), instance=publisher.instance)
    wait_until(lambda: spool.depth().events == 212, "the acks for us are taken")
    assert spool.oldest_seq() == 1


def test_when_numbers_were_used_before_a_new_epoch_begins_once_the_spool_is_empty(
    publisher: Publisher, spool: Spool, central: Central
) -> None:
    old = spool.epoch
    wait_until(lambda: central.batches, "the backlog is sent")
    central.ack(old, (1, 100), instance=publisher.instance, reused=True)
    wait_until(lambda: spool.warning, "the agent warns")
    assert spool.epoch == old
    central.ack(old, (101, 214), instance=publisher.instance)
    wait_until(lambda: spool.epoch != old, "a new epoch begins")
    spool.append([Alarm(AT, 7)], "there")
    publisher.wake()
    wait_until(lambda: central.batches[-1].epoch == spool.epoch, "later events are of the new epoch")
    wait_until(lambda: central.states[-1].epoch == spool.epoch, "the service is told")
    assert central.states[-1].warning == spool.warning
