"""Subscribe to JSON messages of the plant's broker; a message is acknowledged after the spool's commit."""

import hashlib
import json
import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Event, Lock
from typing import Any, NamedTuple

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from pydantic import Field

from edge_agent.sources import Context, Lost, Record, SourceBatch
from edge_agent.sources.outage import Outage, read_bookmark, write_bookmark
from edge_agent.sources.plant_broker import KEEPALIVE_S, UNNOTICED, PlantBrokerOptions
from edge_agent.sources.records import read_record
from edge_agent.sources.signals import parse_options
from wire.broker_check import Finding, tls_context
from wire.log_rows import RowRejected
from wire.records import RecordFields

log = logging.getLogger(__name__)

_BATCH = 100
_WAIT_S = 0.2
_SESSION_S = 7 * 24 * 3600
_IN_FLIGHT = 100  # unacknowledged messages; MQTT 3.1.1 cannot limit them
_WAITING = 500  # messages in memory; beyond it nothing is received
_REMEMBERED = 1000  # digests of stored messages: those whose ack did not reach the broker are sent again
_DIGEST_LENGTH = 10
_MAX_BYTES = 1 << 20
_CHECK_S = 5.0


class MqttOptions(PlantBrokerOptions, RecordFields):
    """The table ``[mqtt]``.

    Fields are paths: ``alarm.code`` is the member ``code`` of the member ``alarm``, ``values.0`` the first element
    of a list, and ``$topic.3`` the fourth level of the topic. ``items`` is the path of a list of alarms.
    """

    topics: tuple[str, ...] = Field(min_length=1)
    client_id: str = Field(min_length=1, max_length=200)
    items: str | None = None


class _Message(NamedTuple):
    connection: int
    mid: int
    topic: str
    payload: bytes
    retained: bool
    again: bool


class MqttSource:
    """Keeps a session at the broker, which stores messages while the agent is away."""

    def __init__(self, options: MqttOptions, context: Context) -> None:
        self._options, self._context = options, context
        self._broker = options.broker(context.password)
        self._messages: Queue[_Message] = Queue(_WAITING)
        self._connection, self._reconnecting = 0, Lock()
        self._closed = Event()
        self._problem: str | None = "not connected yet"
        self._new_session = False

    def batches(self, bookmark: str | None, stop: Event) -> Iterator[SourceBatch]:
        """Yield the alarms of messages; they are acknowledged when the next batch is requested."""
        seen, stored = read_bookmark(bookmark)
        outage = Outage(f"mqtt://{self._broker}", seen, UNNOTICED, keeps=True)
        digests: deque[str] = deque(stored.get("digests", []), maxlen=_REMEMBERED)
        trial = self._context.trial  # another session: ours stays as it is
        client = self._client(f"{self._options.client_id}-try" if trial else None)
        self._connect(client, fresh=trial)
        try:
            while not stop.is_set():
                messages = self._take()
                if self._problem is not None and not messages:
                    notice = outage.failed(self._problem, self._context.now())
                    if notice is not None:
                        position = write_bookmark(outage.seen, digests=list(digests))
                        yield SourceBatch([], position, warning=notice.warning)
                    continue
                lost = self._lost(outage) if self._problem is None else None
                if messages or lost:
                    yield self._batch(messages, outage, digests, lost)
                    self._acknowledge(client, messages)
        finally:
            self._closed.set()
            client.disconnect()
            client.loop_stop()

    def check(self) -> Iterator[Finding]:
        """Yield whether the broker accepts connection and subscription; the stored session is not touched."""
        client = self._client(f"{self._options.client_id}-doctor")
        self._connect(client, fresh=True)
        ended = Event()
        for _ in range(int(_CHECK_S / _WAIT_S)):
            if self._problem is None or ended.wait(_WAIT_S):
                break
        problem = self._problem
        client.disconnect()
        client.loop_stop()
        if problem is None:
            topics = ", ".join(self._options.topics)
            yield Finding("source", ok=True, message=f"mqtt://{self._broker} accepts the subscription to {topics}")
        else:
            yield Finding("source", ok=False, message=f"cannot read mqtt://{self._broker}: {problem}")

    # --- paho's callbacks, on its network thread ---------------------------------------------------------

    def _on_connect(self, client: mqtt.Client, _data: Any, flags: Any, reason: ReasonCode, _props: Any) -> None:
        if reason.is_failure:
            self._problem = f"the broker refuses the connection: {reason}"
            return
        with self._reconnecting:
            self._connection += 1
        self._new_session = self._new_session or not flags.session_present
        client.subscribe([(topic, 1) for topic in self._options.topics])

    def _on_subscribe(self, _c: mqtt.Client, _data: Any, _mid: int, reasons: list[ReasonCode], _p: Any) -> None:
        refused = [
            topic for topic, reason in zip(self._options.topics, reasons, strict=False) if reason.is_failure
        ]
        self._problem = f"the broker does not permit to subscribe to {', '.join(refused)}" if refused else None

    def _on_disconnect(self, _c: mqtt.Client, _data: Any, _flags: Any, reason: ReasonCode, _props: Any) -> None:
        self._problem = f"lost the connection: {reason}"

    def _on_connect_fail(self, _client: mqtt.Client, _data: Any) -> None:
        self._problem = "no connection; check address, port and TLS"

    def _on_message(self, _client: mqtt.Client, _data: Any, message: mqtt.MQTTMessage) -> None:
        payload = bytes(message.payload)
        found = _Message(self._connection, message.mid, message.topic, payload, message.retain, message.dup)
        while not self._closed.is_set():
            with suppress(Full):
                self._messages.put(found, timeout=_WAIT_S)
                return

    # --- messages ------------------------------------------------------------------------------------

    def _take(self) -> list[_Message]:
        messages: list[_Message] = []
        try:
            messages.append(self._messages.get(timeout=_WAIT_S))
            while len(messages) < _BATCH:
                messages.append(self._messages.get_nowait())
        except Empty:
            pass
        return messages

    def _acknowledge(self, client: mqtt.Client, messages: list[_Message]) -> None:
        """Acknowledge stored messages; an id of an earlier connection may name another message now."""
        with self._reconnecting:
            for message in messages:
                if message.connection == self._connection:
                    client.ack(message.mid, 1)

    def _lost(self, outage: Outage) -> Lost | None:
        """Return a gap if the broker had no session: it has stored nothing since the last connection."""
        lost = outage.succeeded(self._context.now())
        new_session, self._new_session = self._new_session, False
        return lost if new_session else None

    def _batch(
        self, messages: list[_Message], outage: Outage, digests: deque[str], lost: Lost | None
    ) -> SourceBatch:
        batch = SourceBatch([], "", lost=lost)
        for message in messages:
            content = f"{message.mid} {message.topic}".encode() + b"\0" + message.payload
            digest = hashlib.sha256(content).hexdigest()[:_DIGEST_LENGTH]
            if message.again and digest in digests:
                continue
            digests.append(digest)
            if message.retained:
                continue  # an old message that the broker sends to each new subscriber
            try:
                for record in self._records(message):
                    batch.add(*record)
            except RowRejected as error:
                batch.skipped.append(f"{message.topic}: {error}")
        position = write_bookmark(outage.seen, digests=list(digests))
        return SourceBatch(batch.alarms, position, batch.skipped, lost, transitions=batch.transitions)

    def _records(self, message: _Message) -> Iterator[Record]:
        if len(message.payload) > _MAX_BYTES:
            raise RowRejected(f"{len(message.payload)} bytes are too many")
        try:
            body = json.loads(message.payload)
        except (ValueError, RecursionError):
            raise RowRejected("the message is not JSON") from None
        items = follow(body, self._options.items) if self._options.items else body
        for item in items if isinstance(items, list) else [items]:
            record = read_record(_getter(item, message.topic), self._options, self._context)
            if record is not None:
                yield record

    def _client(self, client_id: str | None = None) -> mqtt.Client:
        version = MQTTProtocolVersion.MQTTv5 if self._broker.is_v5 else MQTTProtocolVersion.MQTTv311
        client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            client_id=client_id or self._options.client_id,
            protocol=version,
            manual_ack=True,
            clean_session=None if self._broker.is_v5 else client_id is not None,
        )
        if self._broker.username is not None:
            client.username_pw_set(self._broker.username, self._broker.password)
        if self._broker.tls:
            client.tls_set_context(tls_context(self._broker))
        client.reconnect_delay_set(1, 10)
        client.suppress_exceptions = True
        client.on_connect, client.on_subscribe = self._on_connect, self._on_subscribe
        client.on_disconnect, client.on_connect_fail = self._on_disconnect, self._on_connect_fail
        client.on_message = self._on_message
        return client

    def _connect(self, client: mqtt.Client, *, fresh: bool = False) -> None:
        more: dict[str, Any] = {}
        if self._broker.is_v5:
            properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
            properties.SessionExpiryInterval = 0 if fresh else _SESSION_S
            properties.ReceiveMaximum = _IN_FLIGHT
            more = {"clean_start": fresh, "properties": properties}
        client.connect_async(self._broker.host, self._broker.port, keepalive=KEEPALIVE_S, **more)
        client.loop_start()


def follow(body: Any, path: str) -> Any:
    """Return the value at a path of member names and list positions, None if there is none."""
    for part in path.split("."):
        if isinstance(body, dict):
            body = body.get(part)
        elif isinstance(body, list) and part.isdigit() and int(part) < len(body):
            body = body[int(part)]
        else:
            return None
    return body


def _getter(item: Any, topic: str) -> Callable[[str], Any]:
    def get(path: str) -> Any:
        if path.startswith("$topic."):
            return follow(topic.split("/"), path.removeprefix("$topic."))
        value = follow(item, path)
        if isinstance(value, dict | list):
            raise RowRejected(f"{path} is not a text or a number")
        return value

    return get


def build(options: dict[str, Any], context: Context) -> MqttSource:
    """Return the source of the table ``[mqtt]``."""
    return MqttSource(parse_options(MqttOptions, options, "mqtt"), context)
