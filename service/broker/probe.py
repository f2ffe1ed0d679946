"""A look at the broker before anything is started: a client that comes, asks to be let in, and goes."""

from threading import Event
from typing import Any
from uuid import uuid4

import paho.mqtt.client as mqtt
from paho.mqtt.reasoncodes import ReasonCode

from service.broker.address import BrokerAddress
from wire.topics import Channel, every_machine


def connection_error(address: BrokerAddress, *, client_id: str, seconds: float) -> str | None:
    """Return why the broker does not let us in and listen, or None if it does.

    Under a name of its own and without a session, because of two clients of one name the broker drops the first.
    """
    session = {} if address.speaks_v5 else {"clean_session": True}
    client = address.client(f"{client_id}-check-{uuid4().hex[:8]}", **session)
    answered, words = Event(), ["it does not answer in this version of MQTT"]

    def connected(client: mqtt.Client, _data: Any, _flags: Any, reason: ReasonCode, _properties: Any) -> None:
        if reason.is_failure:
            words[:] = [f"it refuses us: {reason}"]
            answered.set()
        else:
            words[:] = ["it does not answer a subscription"]
            client.subscribe(every_machine(Channel.STATE), qos=1)

    def subscribed(_c: mqtt.Client, _data: Any, _mid: int, reasons: list[ReasonCode], _p: Any) -> None:
        words[:] = [f"it refuses a subscription: {reason}" for reason in reasons if reason.is_failure]
        answered.set()

    client.on_connect, client.on_subscribe = connected, subscribed
    try:
        client.connect(address.host, address.port, keepalive=10)
    except (OSError, ValueError) as error:
        return str(error)
    client.loop_start()
    answered.wait(seconds)
    client.disconnect()
    client.loop_stop()
    return words[0] if words else None
