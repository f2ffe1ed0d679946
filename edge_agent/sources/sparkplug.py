"""A Sparkplug B host application for one edge node and its devices."""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from queue import Empty, Queue
from threading import Event
from typing import Any

import paho.mqtt.client as mqtt
from google.protobuf.message import DecodeError
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.reasoncodes import ReasonCode
from pydantic import Field

from edge_agent.sources import Context
from edge_agent.sources.edges import UNDESCRIBED
from edge_agent.sources.monitor import Monitored, Reading
from edge_agent.sources.plant_broker import KEEPALIVE_S, UNNOTICED, PlantBrokerOptions
from edge_agent.sources.signals import (
    Signal,
    Unreachable,
    Unreadable,
    by_address,
    parse_options,
)
from edge_agent.sources.sparkplug_node import EdgeNode, MetricChange, NodeMessage, Offline
from edge_agent.sources.sparkplug_payload import WIDTHS, Payload, rebirth_request
from wire.broker_check import Finding, tls_context
from wire.mqtt import MqttVersion

_NAMESPACE = "spBv1.0"
_WAIT_S = 0.2
_BATCH = 500
_CONNECT_S = 10.0
_REBIRTH_INTERVAL_S = 5.0
_BIRTH_S = 10.0  # after which a missing birth is a warning
_ID = r"^[^+#/]+$"


class MetricSignal(Signal):
    """A metric of the edge node, or of one of its devices."""

    metric: str = Field(min_length=1)
    device: str = Field(default="", pattern=r"^[^+#/]*$")

    @property
    def title(self) -> str:
        return f"{self.device}/{self.metric}" if self.device else self.metric


class SparkplugOptions(PlantBrokerOptions):
    """The table ``[sparkplug]``."""

    group: str = Field(pattern=_ID)
    edge_node: str = Field(pattern=_ID)
    host_id: str = Field(pattern=_ID)
    version: MqttVersion = MqttVersion.V311
    reorder_seconds: float = Field(default=2.0, ge=0, le=60)
    debounce_seconds: float = Field(default=0.0, ge=0, le=3600)
    signals: tuple[MetricSignal, ...] = Field(min_length=1)


class SparkplugDevice:
    """A connection to the plant's broker; without it nothing is stored for us, so its end is a gap."""

    unnoticed = UNNOTICED

    def __init__(self, options: SparkplugOptions, context: Context) -> None:
        self._options, self._context = options, context
        self._broker = options.broker(context.password)
        host = f"{options.host_id}-try" if context.trial else options.host_id
        self._host, self._state_topic = host, f"{_NAMESPACE}/STATE/{host}"
        self._signals = by_address((signal.title, signal) for signal in options.signals)
        self._client: mqtt.Client | None = None
        self._node = EdgeNode(options.reorder_seconds)
        self._rebirth_at = 0.0
        self._unborn_since: float | None = None
        self._since = 0
        self._messages: Queue[mqtt.MQTTMessage | Unreachable] = Queue()
        self._ready = Event()
        self.title = f"{options.url} {options.group}/{options.edge_node}"

    def open(self) -> None:
        """Connect, subscribe and publish that this host is online."""
        self._messages, self._ready = Queue(), Event()
        self._node = EdgeNode(self._options.reorder_seconds)
        self._since, self._rebirth_at = round(time.time() * 1000), 0.0
        client = self._build()
        self._client = client
        try:
            client.connect(self._broker.host, self._broker.port, KEEPALIVE_S)
        except (OSError, ValueError) as error:
            raise Unreachable(f"no connection: {error}; check address and port") from None
        client.loop_start()
        until = time.monotonic() + _CONNECT_S
        while not self._ready.wait(_WAIT_S):
            with suppress(Empty):
                self._raise_if_ended(self._messages.get_nowait())
            if time.monotonic() > until:
                raise Unreachable("the broker does not answer")

    @property
    def unknown(self) -> str | None:
        """Why nothing is known: the edge node has not sent its birth."""
        if not self._node.needs_rebirth:
            self._unborn_since = None
            return None
        now = time.monotonic()
        self._unborn_since = self._unborn_since or now
        is_late = now - self._unborn_since > _BIRTH_S
        return "the edge node does not send its birth; is it online?" if is_late else ""

    def readings(self, _stop: Event) -> list[Reading]:
        """Return the changes that have arrived; ask for births where they are missing."""
        readings: list[Reading] = []
        with suppress(Empty):
            message = self._messages.get(timeout=_WAIT_S)
            while True:
                if isinstance(message, Unreachable) and readings:
                    self._messages.put(message)  # after what was received before
                    break
                readings += self._take(self._raise_if_ended(message))
                if len(readings) >= _BATCH:
                    break
                message = self._messages.get_nowait()
        now = time.monotonic()
        self._node.check(now)
        if self._node.needs_rebirth and now >= self._rebirth_at and self._client is not None:
            self._rebirth_at = now + _REBIRTH_INTERVAL_S
            self._client.publish(self._topic("NCMD"), rebirth_request(round(time.time() * 1000)))
        return readings

    def check(self) -> Iterator[Finding]:
        """Yield whether the edge node answers with births that have every metric."""
        found: dict[str, Reading] = {}
        until = time.monotonic() + _CONNECT_S
        while set(found) != set(self._signals) and time.monotonic() < until:
            found |= {reading.signal: reading for reading in self.readings(Event())}
        for title in self._signals:
            reading = found.get(title)
            problem = reading.problem if reading else "no birth with this metric was received"
            active = ", ".join(sorted(reading.active)) if reading else ""
            yield Finding(title, ok=problem is None, message=problem or f"active now: {active or 'no alarm'}")

    def close(self) -> None:
        """Publish that this host is offline, and disconnect."""
        client, self._client = self._client, None
        if client is not None:
            self._ready.clear()  # before our own death message comes back
            if client.is_connected():
                death = client.publish(self._state_topic, self._state(online=False), qos=1, retain=True)
                with suppress(RuntimeError, ValueError):
                    death.wait_for_publish(2)
            client.disconnect()
            client.loop_stop()

    # --- paho's callbacks, on its network thread ---------------------------------------------------------

    def _on_connect(self, client: mqtt.Client, _data: Any, _flags: Any, reason: ReasonCode, _props: Any) -> None:
        if reason.is_failure:
            self._messages.put(Unreachable(f"the broker refuses the connection: {reason}"))
            return
        client.subscribe([(self._state_topic, 1), *((topic, 1) for topic in self._topics())])

    def _on_subscribe(
        self, client: mqtt.Client, _data: Any, _mid: int, reasons: list[ReasonCode], _p: Any
    ) -> None:
        if any(reason.is_failure for reason in reasons):
            self._messages.put(Unreachable("the broker does not permit to subscribe; correct its ACLs"))
            return
        client.publish(self._state_topic, self._state(online=True), qos=1, retain=True)
        self._ready.set()

    def _on_disconnect(self, _c: mqtt.Client, _data: Any, _flags: Any, reason: ReasonCode, _props: Any) -> None:
        self._messages.put(Unreachable(f"lost the connection: {reason}"))

    def _on_message(self, client: mqtt.Client, _data: Any, message: mqtt.MQTTMessage) -> None:
        if message.topic != self._state_topic:
            self._messages.put(message)
        elif b"false" in message.payload and self._ready.is_set():
            # The will of an earlier connection has arrived late.
            client.publish(self._state_topic, self._state(online=True), qos=1, retain=True)

    # --- messages ------------------------------------------------------------------------------------

    @staticmethod
    def _raise_if_ended(message: mqtt.MQTTMessage | Unreachable) -> mqtt.MQTTMessage:
        if isinstance(message, Unreachable):
            raise message
        return message

    def _take(self, message: mqtt.MQTTMessage) -> list[Reading]:
        parts = message.topic.split("/")
        payload = Payload()
        try:
            payload.ParseFromString(bytes(message.payload))
        except DecodeError:
            return [Reading(message.topic, problem="the message is not a Sparkplug payload")]
        device = "/".join(parts[4:])
        changes = list(self._node.take(NodeMessage(parts[2], device, payload), time.monotonic()))
        readings = [reading for change in changes for reading in self._read(change)]
        if self._node.lost and readings:
            self._node.lost = False
            lost = f"Messages of {self.title} are missing: their numbers have a gap."
            readings[0] = Reading(readings[0].signal, readings[0].active, readings[0].at, lost=lost)
        if parts[2] in ("NBIRTH", "DBIRTH"):
            named = {change.name for change in changes if isinstance(change, MetricChange)}
            readings += [
                Reading(title, problem="the birth does not have this metric")
                for title, signal in self._signals.items()
                if signal.device == device and signal.metric not in named
            ]
        return readings

    def _read(self, change: MetricChange | Offline) -> list[Reading]:
        if isinstance(change, Offline):
            return [
                Reading(title, problem="it is offline")
                for title, signal in self._signals.items()
                if change.device in (None, signal.device)
            ]
        title = f"{change.device}/{change.name}" if change.device else change.name
        signal = self._signals.get(title)
        if signal is None:
            return []
        at = datetime.fromtimestamp(change.at_ms / 1000, UTC) if change.at_ms else None
        try:
            return [Reading(title, dict.fromkeys(_active(signal, change, title), UNDESCRIBED), at)]
        except Unreadable as error:
            return [Reading(title, problem=str(error), at=at)]

    def _topics(self) -> list[str]:
        kinds = ("NBIRTH", "NDATA", "NDEATH")
        devices = [f"{self._topic(kind)}/+" for kind in ("DBIRTH", "DDATA", "DDEATH")]
        return [*(self._topic(kind) for kind in kinds), *devices]

    def _topic(self, kind: str) -> str:
        return f"{_NAMESPACE}/{self._options.group}/{kind}/{self._options.edge_node}"

    def _state(self, *, online: bool) -> bytes:
        return json.dumps({"online": online, "timestamp": self._since}).encode()

    def _build(self) -> mqtt.Client:
        version = MQTTProtocolVersion.MQTTv5 if self._broker.is_v5 else MQTTProtocolVersion.MQTTv311
        client = mqtt.Client(
            CallbackAPIVersion.VERSION2, client_id=self._host, protocol=version, reconnect_on_failure=False
        )
        if self._broker.username is not None:
            client.username_pw_set(self._broker.username, self._broker.password)
        if self._broker.tls:
            client.tls_set_context(tls_context(self._broker))
        client.will_set(self._state_topic, self._state(online=False), qos=1, retain=True)
        client.suppress_exceptions = True
        client.on_connect, client.on_subscribe = self._on_connect, self._on_subscribe
        client.on_disconnect, client.on_message = self._on_disconnect, self._on_message
        return client


def _active(signal: MetricSignal, change: MetricChange, title: str) -> set[str]:
    value, width = change.value, WIDTHS.get(change.datatype, 32)
    if isinstance(value, str) and signal.meaning == "code":
        return {value.strip()} if value.strip() else set()
    if isinstance(value, bool) and signal.meaning != "code":
        return signal.active_bits([value], title)
    if isinstance(value, int) and not isinstance(value, bool):
        return signal.active_values([value], width, title)
    kind = "null" if value is None else type(value).__name__
    raise Unreadable(f"its value is {kind}, which cannot be read with as = {signal.meaning!r}")


def build(options: dict[str, Any], context: Context) -> Monitored:
    """Return the source of the table ``[sparkplug]``."""
    parsed = parse_options(SparkplugOptions, options, "sparkplug")
    return Monitored(SparkplugDevice(parsed, context), context, debounce=parsed.debounce_seconds)
