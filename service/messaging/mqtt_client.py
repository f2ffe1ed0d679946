"""The connection to the broker: subscribes on every connect, hands messages on, acks only what it may.

A message may be acked to the broker only on the connection that brought it: after a reconnect the same
message id belongs to another message. Every connection therefore has a generation, and so has every message.
"""

import logging
import random
import ssl
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum
from threading import Lock
from typing import Any, NamedTuple

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from service.messaging.broker_connection import create_client, tls_hint
from service.messaging.broker_stats import TOPICS, BrokerStats
from service.messaging.bus import LeaseChanged
from service.messaging.process import Lease
from wire.codec import exceeds_limit
from wire.mqtt import BrokerConfig
from wire.topics import SHARED_EVENTS, Channel, every_machine

log = logging.getLogger(__name__)

_SESSION_SECONDS = 7 * 24 * 3600  # how long the broker keeps our queue while we are away
_KEEPALIVE = 15  # seconds; a connection that only looks open is given up after at most twice as long
_PUBLISH_OVERHEAD = 10  # bytes of a packet beside topic and payload, at most
_NO_LIMIT = 1 << 28  # MQTT's own
_EVENTS, _STATES = every_machine(Channel.EVENTS), every_machine(Channel.STATE)


class MqttMessage(NamedTuple):
    """A message and what it takes to ack it to the broker."""

    generation: int
    mid: int
    qos: int
    topic: str
    payload: bytes
    retained: bool


class SubscriptionMode(Enum):
    """What a process listens to at the broker."""

    EXCLUSIVE = "all"  # events and states, alone, in a session that outlives the process
    SHARED = "shared"  # a share of the events; states while it is its turn
    LEADER_ONLY = "in turn"  # events and states, while it is its turn: MQTT 3.1.1 has no shares
    NONE = "nothing"  # it only speaks


_ALWAYS = {SubscriptionMode.EXCLUSIVE: (_EVENTS, _STATES), SubscriptionMode.SHARED: (SHARED_EVENTS,)}
_IN_TURN = {SubscriptionMode.SHARED: (_STATES,), SubscriptionMode.LEADER_ONLY: (_EVENTS, _STATES)}


class MqttClient:
    """One paho client, reconnecting for ever; ``connected`` and ``error`` are its state.

    One of several processes has a session that ends with its connection. Agents resend what it had not acked. A
    persistent session of a process that never returns would hold its share of the messages for days.
    """

    def __init__(
        self,
        address: BrokerConfig,
        *,
        client_id: str,
        receive_maximum: int,
        deliver: Callable[[MqttMessage], bool],
        watch: BrokerStats,
        hearing: SubscriptionMode = SubscriptionMode.EXCLUSIVE,
    ) -> None:
        self._address, self._deliver, self._watch = address, deliver, watch
        self.client_id = client_id
        self._hearing = hearing
        self._has_turn = False
        self._receive_maximum = receive_maximum
        self._lock = Lock()
        self._generation = 0
        self._subscribing: int | None = None
        self._had_session = False
        self._packet_limit = _NO_LIMIT  # bytes; MQTT 5 brokers state theirs when we connect
        self.connect_count = 0  # connects so far; a change means a reconnect
        self.connected = self._may_publish = False
        self._answered = False  # whether the broker has answered on this connection; a TLS port only hangs up
        self.error: str | None = f"not connected yet to the broker at {address.host}:{address.port}"
        self.certificate_ends: datetime | None = None  # of the broker's, where we speak TLS
        self._client = self._build(client_id)

    def start(self) -> None:
        """Begin to connect; returns at once, whether or not a broker is there."""
        self._client.connect_async(
            self._address.host, self._address.port, keepalive=_KEEPALIVE, **self._lasting_session_arguments()
        )
        self._client.loop_start()

    def stop(self) -> None:
        """Disconnect; the broker keeps the session for the next start."""
        self.connected = self._may_publish = False
        self._client.disconnect()
        self._client.loop_stop()

    @property
    def is_alive(self) -> bool:
        """Whether paho's network thread still runs."""
        thread = self._client._thread  # noqa: SLF001 - paho offers no other way to see that its thread died
        return thread is not None and thread.is_alive()

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> None:
        """Hand a message to the broker if it is there; what is lost here is sent again by its own rules.

        Nothing is queued while the broker is away: agents resend what was not acked, and the next forecast
        replaces the last.
        """
        if not self._may_publish:
            return
        if exceeds_limit(payload) or len(payload) + len(topic) + _PUBLISH_OVERHEAD > self._packet_limit:
            log.error("not published: %d bytes to %s are above the broker's limit", len(payload), topic)
            self._watch.refused_oversize(topic)
            return
        self._client.publish(topic, payload, qos=1, retain=retain)

    def ack(self, delivery: MqttMessage) -> None:
        """Ack a message to the broker, unless it came over a connection that is gone."""
        with self._lock:
            if delivery.generation == self._generation:
                self._client.ack(delivery.mid, delivery.qos)

    def on_lease_changed(self, event: LeaseChanged) -> None:
        """Subscribe to agent states with the lease for them, or unsubscribe; the broker resends retained ones."""
        if event.lease is Lease.AGENT_STATES:
            self.set_leader(event.held)

    def set_leader(self, mine: bool) -> None:  # noqa: FBT001
        """Subscribe to what only one process receives, or unsubscribe."""
        topics = _IN_TURN.get(self._hearing, ())
        with self._lock:
            if mine == self._has_turn:
                return
            self._has_turn = mine
            if not (topics and self._may_publish):
                return  # what is wanted is subscribed to with the next connection
            if mine:
                self._client.subscribe([(topic, 1) for topic in topics])
            else:
                self._client.unsubscribe(list(topics))

    # --- paho's callbacks, on its network thread ---------------------------------------------------------

    def _on_connect(self, client: mqtt.Client, _data: Any, flags: Any, reason: ReasonCode, props: Any) -> None:
        self._answered = True
        if reason.is_failure:
            self.error = f"the broker at {self._address.host}:{self._address.port} refused: {reason}"
            log.error(self.error)
            return
        self.certificate_ends = _ends(client)
        self._packet_limit = getattr(props, "MaximumPacketSize", _NO_LIMIT)
        # A resumed session delivers what it kept before it answers our subscription; acks must flow by then.
        self._may_publish = True
        if self._had_session and not flags.session_present and self._hearing is SubscriptionMode.EXCLUSIVE:
            log.warning("the broker has forgotten our session; agents will send again what it kept")
            self._watch.session_lost()
        with self._lock:
            wanted = self._wanted()
        if wanted:
            self._subscribing = client.subscribe([(topic, 1) for topic in wanted])[1]
        else:
            self._mark_connected()
        client.subscribe([(topic, 0) for topic in TOPICS])

    def _on_subscribe(self, _c: mqtt.Client, _data: Any, mid: int, reasons: list[ReasonCode], _p: Any) -> None:
        if mid != self._subscribing:
            return  # a broker may keep its counters to itself
        refused = [str(reason) for reason in reasons if reason.is_failure]
        if refused:
            self.error = f"the broker refused a subscription: {', '.join(refused)}"
            log.error(self.error)
            return
        self._mark_connected()

    def _mark_connected(self) -> None:
        self.connected, self.error = True, None
        self.connect_count += 1
        self._had_session = True
        log.info("connected to the broker at %s:%d", self._address.host, self._address.port)

    def _on_disconnect(self, _c: mqtt.Client, _data: Any, _flags: Any, reason: ReasonCode, _props: Any) -> None:
        with self._lock:
            self._generation += 1
        if self.connected:
            log.warning("lost the broker: %s", reason)
        hint = None if self._answered else tls_hint(self._address)
        self.connected = self._may_publish = self._answered = False
        if hint is not None:
            self._set_error(hint)
        else:
            self.error = f"no connection to the broker at {self._address.host}:{self._address.port}: {reason}"

    def _on_connect_fail(self, _client: mqtt.Client, _data: Any) -> None:
        error = sys.exc_info()[1]  # paho calls this where it handles it
        self._set_error(f"no connection to the broker at {self._address.host}:{self._address.port}: {error}")

    def _set_error(self, error: str) -> None:
        if error != self.error:
            log.warning("%s", error)
        self.error = error

    def _on_message(self, _c: mqtt.Client, _data: Any, message: mqtt.MQTTMessage) -> None:
        try:
            topic = message.topic
        except UnicodeDecodeError:
            topic = "\ufffd"
        delivery = MqttMessage(
            self._generation,
            message.mid,
            message.qos,
            topic,
            bytes(message.payload),
            retained=message.retain,
        )
        if not self._deliver(delivery):
            self.ack(delivery)  # it goes back: its agent was not acked and will send it again

    def _on_figure(self, _c: mqtt.Client, _data: Any, message: mqtt.MQTTMessage) -> None:
        self._watch.update(message.topic, bytes(message.payload))

    # --- small parts ---------------------------------------------------------------------------------

    def _wanted(self) -> list[str]:
        in_turn = _IN_TURN.get(self._hearing, ()) if self._has_turn else ()
        return [*_ALWAYS.get(self._hearing, ()), *in_turn]

    def _build(self, client_id: str) -> mqtt.Client:
        lasting = {} if self._address.is_v5 else {"clean_session": self._hearing is not SubscriptionMode.EXCLUSIVE}
        client = create_client(self._address, client_id, manual_ack=True, **lasting)
        client.reconnect_delay_set(random.uniform(0.2, 0.5), random.uniform(3, 5))  # type: ignore[arg-type]  # noqa: S311
        # No limit of paho's: at every PUBACK it would look through all that is under way for what may follow.
        client.max_inflight_messages_set(0)
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_disconnect = self._on_disconnect
        client.on_connect_fail = self._on_connect_fail
        client.on_message = self._on_message
        client.message_callback_add("$SYS/#", self._on_figure)
        return client

    def _lasting_session_arguments(self) -> dict[str, Any]:
        if not self._address.is_v5:
            return {}
        lasts = self._hearing is SubscriptionMode.EXCLUSIVE
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = _SESSION_SECONDS if lasts else 0
        properties.ReceiveMaximum = self._receive_maximum
        return {"clean_start": not lasts, "properties": properties}


def _ends(client: mqtt.Client) -> datetime | None:
    """Return when the certificate ends that the broker has shown."""
    connection = client.socket()
    shown = connection.getpeercert() if isinstance(connection, ssl.SSLSocket) else None
    if not shown:
        return None
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(str(shown["notAfter"])), UTC)
