"""Forecasts out: retained beside each machine, for whoever connects next."""

from dataclasses import dataclass

from service.messaging.mqtt_client import MqttClient
from wire.identity import MachineId
from wire.topics import Channel, topic


@dataclass(frozen=True)
class ForecastPublisher:
    """Publishes each machine's newest forecast."""

    link: MqttClient

    def publish(self, machine: MachineId, encoded: bytes) -> None:
        """Replace the machine's retained forecast."""
        self.link.publish(topic(machine, Channel.FORECAST), encoded, retain=True)

    def clear(self, machine: MachineId) -> None:
        """Take the machine's retained forecast away; an HMI must not show it for ever."""
        self.link.publish(topic(machine, Channel.FORECAST), b"", retain=True)
