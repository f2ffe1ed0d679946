"""An MQTT client that records what is published and acked."""

from typing import NamedTuple

from service.messaging.mqtt_client import MqttMessage


class Published(NamedTuple):
    """A published message."""

    topic: str
    payload: bytes
    retain: bool


class RecordingMqtt:
    """Records messages instead of sending them to a broker."""

    def __init__(self) -> None:
        self.published: list[Published] = []
        self.acked: list[int] = []

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> None:
        self.published.append(Published(topic, payload, retain))

    def ack(self, message: MqttMessage) -> None:
        self.acked.append(message.mid)
