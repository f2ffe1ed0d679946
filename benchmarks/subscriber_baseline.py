"""The limit of ingest: a program that is the service's subscriber without the service.

The same client, protocol, QoS, receive maximum and manual acks, but each message is only counted:
``python -m benchmarks.subscriber_baseline PORT MESSAGES`` publishes a word when it is ready and another when it is
done. With
``stock`` behind it, it is paho's own client, which does not read ahead.
"""

import sys
from threading import Event
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from benchmarks.servers import HOST
from service.messaging.broker_connection import create_client
from service.settings import Settings
from wire.mqtt import BrokerConfig
from wire.topics import Channel, every_machine

TOPIC = "benchmark/counter"
_NAME = "benchmark-counter"
_AT_MOST = 300  # seconds


def main(port: int, messages: int, *, stock: bool) -> None:
    """Count so many messages, then end."""
    done = Event()
    counted = 0

    def count(client: mqtt.Client, _data: Any, message: mqtt.MQTTMessage) -> None:
        nonlocal counted
        client.ack(message.mid, message.qos)
        counted += 1
        if counted == messages:
            client.publish(TOPIC, "done", qos=1)
            done.set()

    def say_ready(client: mqtt.Client, *_told: Any) -> None:
        client.publish(TOPIC, "ready", qos=1)

    client = _stock() if stock else create_client(BrokerConfig(HOST, port), _NAME, manual_ack=True)
    client.on_message = count
    client.on_subscribe = say_ready
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.ReceiveMaximum = Settings.model_fields["ingest_receive_maximum"].default
    client.connect(HOST, port, keepalive=30, properties=properties)
    client.subscribe(every_machine(Channel.EVENTS), qos=1)
    client.loop_start()
    done.wait(_AT_MOST)
    client.disconnect()
    client.loop_stop()


def _stock() -> mqtt.Client:
    version, protocol = CallbackAPIVersion.VERSION2, MQTTProtocolVersion.MQTTv5
    return mqtt.Client(version, client_id=_NAME, protocol=protocol, manual_ack=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), stock="stock" in sys.argv[3:])
