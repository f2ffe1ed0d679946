"""The broker's configuration, believed only after a real Mosquitto has shown it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from service.settings import Settings
from tests.conftest import wait_until
from tests.deploy.conftest import DeployedBroker
from wire.codec import MAX_BYTES

TOPIC = "alarmcast/v1/padova/filler-1/events"
MORE_THAN_THE_DEFAULT_QUEUE = 1500


@dataclass
class Peer:
    """A client and what happened to it."""

    client: mqtt.Client
    welcome: Any = None
    received: list[bytes] = field(default_factory=list)
    goodbyes: list[ReasonCode] = field(default_factory=list)
    subscribed: Event = field(default_factory=Event)

    def subscribe(self) -> None:
        self.client.subscribe(TOPIC, qos=1)
        assert self.subscribed.wait(20)

    def publish(self, payloads: list[bytes]) -> None:
        """Publish and wait until the broker has taken every one."""
        for info in [self.client.publish(TOPIC, payload, qos=1) for payload in payloads]:
            info.wait_for_publish(timeout=20)
            assert info.is_published()


@contextmanager
def connected(
    broker: DeployedBroker, name: str, protocol: MQTTProtocolVersion = MQTTProtocolVersion.MQTTv5
) -> Iterator[Peer]:
    """Connect with a session that outlives the connection."""
    lasting: dict[str, Any] = {"clean_session": False} if protocol == MQTTProtocolVersion.MQTTv311 else {}
    peer = Peer(mqtt.Client(CallbackAPIVersion.VERSION2, client_id=name, protocol=protocol, **lasting))
    arrived = Event()

    def on_connect(_client: Any, _data: Any, _flags: Any, reason: ReasonCode, properties: Any) -> None:
        assert not reason.is_failure
        peer.welcome = properties
        arrived.set()

    peer.client.on_connect = on_connect
    peer.client.on_subscribe = lambda *_: peer.subscribed.set()
    peer.client.on_message = lambda _client, _data, message: peer.received.append(bytes(message.payload))
    peer.client.on_disconnect = lambda _client, _data, _flags, reason, _properties: peer.goodbyes.append(reason)
    session: dict[str, Any] = {}
    if protocol == MQTTProtocolVersion.MQTTv5:
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = 3600
        session = {"clean_start": False, "properties": properties}
    peer.client.connect("127.0.0.1", broker.port, **session)
    peer.client.loop_start()
    try:
        assert arrived.wait(20)
        yield peer
    finally:
        peer.client.disconnect()
        peer.client.loop_stop()


def numbered(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_the_broker_finds_nothing_to_warn_about_in_its_configuration(broker: DeployedBroker) -> None:
    broker.stop()
    said = broker.log.read_text(encoding="utf-8")
    assert "running" in said
    assert not [line for line in said.splitlines() if "Warning" in line or "Error" in line or "Note:" in line]


def test_what_is_published_reaches_who_subscribed(broker: DeployedBroker) -> None:
    with connected(broker, "listener") as listener, connected(broker, "speaker") as speaker:
        listener.subscribe()
        speaker.publish([b"hello"])
        wait_until(lambda: listener.received == [b"hello"], "the message arrives")


@pytest.mark.parametrize("restarted", [False, True], ids=["broker stays up", "broker restarts"])
def test_a_queue_longer_than_the_default_allows_is_delivered_whole(
    broker: DeployedBroker,
    restarted: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    messages = numbered(MORE_THAN_THE_DEFAULT_QUEUE)
    with connected(broker, "listener") as listener:
        listener.subscribe()
    with connected(broker, "speaker") as speaker:
        speaker.publish(messages)
    if restarted:
        broker.stop()
        broker.start()
    with connected(broker, "listener") as listener:
        wait_until(lambda: len(listener.received) >= len(messages), "the whole queue arrives")
        assert listener.received == messages


def test_the_service_gets_as_many_messages_under_way_as_it_asks_for(broker: DeployedBroker) -> None:
    wanted: int = Settings.model_fields["ingest_receive_maximum"].default
    with connected(broker, "listener") as listener:
        listener.client.manual_ack_set(True)  # noqa: FBT003 - paho's signature
        listener.subscribe()
        with connected(broker, "speaker") as speaker:
            speaker.publish(numbered(wanted))
        wait_until(lambda: len(listener.received) >= wanted, "all are under way, none of them acked")


def test_the_largest_message_of_the_contract_passes(broker: DeployedBroker) -> None:
    with connected(broker, "listener") as listener, connected(broker, "speaker") as speaker:
        listener.subscribe()
        speaker.publish([b"x" * MAX_BYTES, b"x" * (MAX_BYTES + 1)])
        wait_until(lambda: len(listener.received) == 2, "both arrive, the second to be quarantined")


@pytest.mark.parametrize("protocol", [MQTTProtocolVersion.MQTTv5, MQTTProtocolVersion.MQTTv311])
def test_a_message_beyond_the_limit_is_refused_and_never_called_a_success(
    broker: DeployedBroker, protocol: MQTTProtocolVersion
) -> None:
    with connected(broker, "listener") as listener, connected(broker, "speaker", protocol) as speaker:
        listener.subscribe()
        oversize = speaker.client.publish(TOPIC, b"x" * 70_001, qos=1)
        wait_until(lambda: speaker.goodbyes, "the broker hangs up")
        assert not oversize.is_published()
        if protocol == MQTTProtocolVersion.MQTTv5:
            assert speaker.goodbyes[0] == "Packet too large"
            assert speaker.welcome.MaximumPacketSize == 70_000
    assert listener.received == []
