"""The agent's connection on a real broker: what it must never send."""

from threading import Event

from edge_agent.mqtt_connection import MqttConnection
from tests.conftest import Mosquitto
from wire.mqtt import BrokerConfig

STATE = "alarmcast/v1/padova/filler-1/state"


def test_a_message_above_the_limit_is_refused_and_counted_and_the_connection_stays(mosquitto: Mosquitto) -> None:
    mosquitto.kill()
    mosquitto.extra += "max_packet_size 70000\n"
    mosquitto.start()
    received = Event()
    link = MqttConnection(
        BrokerConfig("127.0.0.1", mosquitto.port),
        client_id="alarmcast-edge/padova/filler-1",
        subscriptions={STATE: lambda _payload: received.set()},
        will=None,
        changed=lambda: None,
    )
    link.open()
    link.publish("alarmcast/v1/padova/filler-1/events", b"x" * 70_001)
    link.publish(STATE, b"1")
    assert received.wait(20), "what is sent after it arrives"
    assert (link.over.is_set(), link.oversize) == (False, 1)
    assert "above the broker's limit" in (link.refused or "")
    link.disconnect()
