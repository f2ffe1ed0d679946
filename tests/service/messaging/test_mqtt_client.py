"""What a process hears at a real broker: by itself, by its share, or in turn."""

import os
import resource
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from service.messaging.broker_connection import connection_error
from service.messaging.broker_stats import BrokerStats
from service.messaging.mqtt_client import MqttClient, MqttMessage, SubscriptionMode
from tests.conftest import Mosquitto, wait_until
from wire.mqtt import BrokerConfig, MqttVersion

EVENTS, STATE = "alarmcast/v1/padova/filler-1/events", "alarmcast/v1/padova/filler-1/state"


class Listener:
    """A link, and the topics of all that it heard."""

    def __init__(self, broker: Mosquitto, name: str, hearing: SubscriptionMode, protocol: MqttVersion) -> None:
        self.heard: list[str] = []
        self.watch = BrokerStats(queue_alarm=1)
        self.link = MqttClient(
            BrokerConfig("127.0.0.1", broker.port, version=protocol),
            client_id=name,
            receive_maximum=10,
            deliver=self._take,
            watch=self.watch,
            hearing=hearing,
        )

    def _take(self, delivery: MqttMessage) -> bool:
        self.heard.append(delivery.topic)
        return False


@contextmanager
def listening(broker: Mosquitto, hearing: SubscriptionMode, protocol: MqttVersion) -> Iterator[list[Listener]]:
    both = [Listener(broker, name, hearing, protocol) for name in ("alarmcast/a", "alarmcast/b")]
    for one in both:
        one.link.start()
    try:
        wait_until(lambda: all(one.link.connected for one in both), "both are connected")
        yield both
    finally:
        for one in both:
            one.link.stop()


def count(listeners: list[Listener], topic: str) -> list[int]:
    return [one.heard.count(topic) for one in listeners]


def test_by_mqtt_3_whoever_has_the_turn_hears_everything_and_the_others_wait(mosquitto: Mosquitto) -> None:
    with listening(mosquitto, SubscriptionMode.LEADER_ONLY, MqttVersion.V311) as both:
        first, second = both
        first.link.publish(STATE, b"{}", retain=True)
        first.link.set_leader(True)
        wait_until(lambda: count(both, STATE) == [1, 0], "the first hears what the broker has kept")
        second.link.publish(EVENTS, b"1")
        wait_until(lambda: count(both, EVENTS) == [1, 0], "the first hears an event")
        first.link.set_leader(False)
        second.link.set_leader(True)
        wait_until(lambda: count(both, STATE) == [1, 1], "the second hears what the broker has kept")
        second.link.publish(EVENTS, b"2")
        wait_until(lambda: count(both, EVENTS) == [1, 1], "the second hears an event")
        assert [one.link.connect_count for one in both] == [1, 1], "nobody was driven out"


def test_what_was_heard_in_turn_is_heard_again_after_the_broker_was_away(mosquitto: Mosquitto) -> None:
    with listening(mosquitto, SubscriptionMode.LEADER_ONLY, MqttVersion.V311) as both:
        both[0].link.set_leader(True)
        mosquitto.kill()
        wait_until(lambda: not any(one.link.connected for one in both), "both have lost it")
        mosquitto.start()
        wait_until(lambda: all(one.link.connected for one in both), "both are back")
        both[1].link.publish(EVENTS, b"1")
        wait_until(lambda: count(both, EVENTS) == [1, 0], "the first hears an event")


@pytest.mark.parametrize("topic", [EVENTS, STATE])
def test_by_mqtt_5_events_are_shared_out_and_states_are_heard_in_turn(mosquitto: Mosquitto, topic: str) -> None:
    with listening(mosquitto, SubscriptionMode.SHARED, MqttVersion.V5) as both:
        both[0].link.publish(STATE, b"{}", retain=True)
        both[1].link.set_leader(True)
        wait_until(lambda: count(both, STATE) == [0, 1], "the broker has taken the second one's subscription")
        before = sum(count(both, topic))
        for number in range(6):
            both[0].link.publish(topic, b"%d" % number)
        wait_until(lambda: sum(count(both, topic)) == before + 6, "each message was heard")
        assert all(count(both, EVENTS)) if topic == EVENTS else count(both, STATE) == [0, 7]


@pytest.mark.parametrize(
    ("extra", "size"), [("max_packet_size 70000\n", 70_001), ("max_packet_size 30000\n", 30_000)]
)
def test_a_message_above_the_brokers_limit_is_refused_and_counted_and_the_connection_stays(
    mosquitto: Mosquitto, extra: str, size: int
) -> None:
    mosquitto.kill()
    mosquitto.extra += extra
    mosquitto.start()
    with listening(mosquitto, SubscriptionMode.EXCLUSIVE, MqttVersion.V5) as (first, second):
        first.link.publish(EVENTS, b"x" * size)
        first.link.publish(STATE, b"1")
        wait_until(lambda: count([second], STATE) == [1], "what is sent after it arrives")
        assert (count([second], EVENTS), first.link.connect_count) == ([0], 1)
        assert first.watch.counts["oversize_publishes"] == 1
        assert EVENTS in first.watch.warnings()["oversize_publish"]


def test_the_broker_is_reached_again_with_more_files_open_than_select_can_watch(mosquitto: Mosquitto) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, limits[1]), limits[1]))
    try:
        with (
            ExitStack() as files,
            listening(mosquitto, SubscriptionMode.EXCLUSIVE, MqttVersion.V5) as (first, second),
        ):
            mosquitto.kill()
            wait_until(lambda: not (first.link.connected or second.link.connected), "both have lost it")
            for _ in range(1100):
                files.enter_context(open(os.devnull))  # noqa: PTH123
            mosquitto.start()
            wait_until(lambda: first.link.connected and second.link.connected, "both are back")
            first.link.publish(EVENTS, b"1")
            wait_until(lambda: count([first, second], EVENTS) == [1, 1], "both hear an event")
            assert connection_error(BrokerConfig("127.0.0.1", mosquitto.port), client_id="x", seconds=20) is None
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
