"""One connection to the broker; a new connection needs a new object.

A client is used once: no message in flight carries over to the next connection, and the spool decides what is
sent again.
"""

import logging
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any, cast

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from wire.broker_check import tls_context
from wire.codec import exceeds_limit
from wire.mqtt import BrokerConfig

log = logging.getLogger(__name__)

KEEPALIVE_S = 15  # a dead connection is detected after at most twice as long
WILL_DELAY_S = 5  # before the broker publishes the last will
_CONNECT_TIMEOUT_S = 10.0
_NO_MATCHING_SUBSCRIBERS = 0x10  # MQTT 5's reason code for a publish that reached no subscriber


@dataclass(frozen=True)
class Will:
    """The last will, published by the broker when the connection is lost."""

    topic: str
    payload: bytes


class MqttConnection:
    """Connects, subscribes, publishes; ``over`` is set when it has ended, and ``error`` is the reason."""

    def __init__(
        self,
        broker: BrokerConfig,
        *,
        client_id: str,
        subscriptions: Mapping[str, Callable[[bytes], None]],
        will: Will | None,
        changed: Callable[[], None],
    ) -> None:
        self._broker, self._subscriptions, self._changed = broker, subscriptions, changed
        self.ready, self.over = Event(), Event()
        self.error: str | None = None
        self.reached = False  # the port accepted the connection
        self.answered = False  # and answered in MQTT, possibly with a refusal
        self.refused: str | None = None  # a subscription or publish that the broker rejected
        self.no_subscribers = False
        self.oversize = 0  # messages above the broker's size limit, not sent
        self.ready_at: float | None = None
        self._client = self._build(client_id, will)

    def open(self) -> None:
        """Connect and subscribe; return when that has succeeded or failed."""
        try:
            self._client.connect(self._broker.host, self._broker.port, KEEPALIVE_S, **self._fresh_session())
        except (OSError, ValueError) as error:  # paho raises ValueError for an invalid host
            self._end(f"cannot reach the broker at {self._broker}: {error}")
            return
        self.reached = True
        self._client.loop_start()
        deadline = time.monotonic() + _CONNECT_TIMEOUT_S
        while not (self.ready.is_set() or self.over.wait(0.02)):
            if time.monotonic() > deadline:
                self.close(f"the broker at {self._broker} does not answer")

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> mqtt.MQTTMessageInfo:
        """Publish a message; one above the broker's size limit is refused and counted, not queued."""
        if exceeds_limit(payload):
            self.oversize += 1
            self.refused = f"not published: {len(payload)} bytes to {topic} are above the broker's limit"
            log.error(self.refused)
            refused = mqtt.MQTTMessageInfo(0)
            refused.rc = mqtt.MQTT_ERR_PAYLOAD_SIZE
            return refused
        return self._client.publish(topic, payload, qos=1, retain=retain)

    def disconnect(self) -> None:
        """Disconnect gracefully: the broker does not publish the will."""
        self._client.disconnect()
        self._client.loop_stop()
        self._end("disconnected")

    def close(self, error: str) -> None:
        """Close the connection without a DISCONNECT."""
        connection = self._client.socket()
        if connection is not None:
            with suppress(OSError):
                cast("socket.socket", connection).shutdown(socket.SHUT_RDWR)
        self._client.loop_stop()
        self._end(error)

    # --- paho's callbacks, on its network thread ---------------------------------------------------------

    def _on_connect(self, client: mqtt.Client, _data: Any, _flags: Any, reason: ReasonCode, _props: Any) -> None:
        self.answered = True
        if reason.is_failure:
            self._end(f"the broker at {self._broker} refuses the connection: {reason}")
            return
        client.subscribe([(topic, 1) for topic in self._subscriptions])

    def _on_subscribe(self, _c: mqtt.Client, _data: Any, _mid: int, reasons: list[ReasonCode], _p: Any) -> None:
        if reasons[0].is_failure:
            # Without the acks nothing ever leaves the spool: a person must fix the ACL.
            self.refused = (
                f"the broker does not permit to subscribe to {next(iter(self._subscriptions))}: {reasons[0]}"
            )
            log.error(self.refused)
        self.ready_at = time.monotonic()
        self.ready.set()
        self._changed()

    def _on_publish(self, _c: mqtt.Client, _data: Any, _mid: int, reason: ReasonCode, _props: Any) -> None:
        if reason.value == _NO_MATCHING_SUBSCRIBERS:
            self.no_subscribers = True
            self._changed()
        elif reason.is_failure and self.refused is None:
            self.refused = f"the broker does not permit to publish: {reason}"
            log.error(self.refused)

    def _on_disconnect(self, _c: mqtt.Client, _data: Any, _flags: Any, reason: ReasonCode, _props: Any) -> None:
        self._end(f"lost the broker at {self._broker}: {reason}")

    def _end(self, error: str) -> None:
        if not self.over.is_set():
            self.error = error
            self.over.set()
            self._changed()

    # --- small parts ---------------------------------------------------------------------------------

    def _build(self, client_id: str, will: Will | None) -> mqtt.Client:
        client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            client_id=client_id,
            protocol=MQTTProtocolVersion.MQTTv5 if self._broker.is_v5 else MQTTProtocolVersion.MQTTv311,
            reconnect_on_failure=False,
        )
        if self._broker.username is not None:
            client.username_pw_set(self._broker.username, self._broker.password)
        if self._broker.tls:
            client.tls_set_context(tls_context(self._broker))
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_publish = self._on_publish
        client.on_disconnect = self._on_disconnect
        # By topic: a broker may send messages that were not subscribed to.
        for topic, received in self._subscriptions.items():
            client.message_callback_add(topic, partial(_forward_message, received))
        client.suppress_exceptions = True  # an exception in a callback would end paho's thread for good
        if will:
            client.will_set(will.topic, will.payload, qos=1, retain=True, **self._will_arguments())
        return client

    def _will_arguments(self) -> dict[str, Any]:
        if not self._broker.is_v5:
            return {}
        properties = Properties(PacketTypes.WILLMESSAGE)  # type: ignore[no-untyped-call]
        properties.WillDelayInterval = WILL_DELAY_S
        return {"properties": properties}

    def _fresh_session(self) -> dict[str, Any]:
        """Start clean every time: the spool decides what is sent again."""
        return {"clean_start": True} if self._broker.is_v5 else {}


def _forward_message(
    received: Callable[[bytes], None], _client: mqtt.Client, _data: Any, message: mqtt.MQTTMessage
) -> None:
    received(bytes(message.payload))
