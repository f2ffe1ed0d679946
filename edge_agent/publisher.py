"""Spool to MQTT: sends what is unacked, forgets what the service says is committed, tells how it is.

Nothing is handed to paho while the broker is away and only a window of events is under way at a time, so
memory stays flat whatever the network does; the spool on disk is the only queue.
"""

import logging
import random
import time
from collections import deque
from dataclasses import dataclass
from datetime import timedelta
from statistics import median
from threading import Condition, Event, Thread
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from edge_agent.spool import Spool
from wire.acks import Ack
from wire.clock import PlantClock
from wire.codec import decode, encode
from wire.errors import PayloadRejected
from wire.events import MAX_EVENTS, EventBatch
from wire.identity import MachineId
from wire.moment import EARLIEST, LATEST
from wire.state import AgentState
from wire.topics import Channel, topic

log = logging.getLogger(__name__)

WINDOW = 10 * MAX_EVENTS
RESEND_AFTER, RESEND_AT_MOST = 10.0, 300.0
HEARTBEAT = timedelta(minutes=5)
HEARTBEAT_AT_LEAST = 0.5  # wall seconds, however fast the plant clock runs
_TAKEN_OVER = 0x8E  # MQTT 5's reason code when somebody connects with our client id
WILL_DELAY = 5  # seconds a broker waits before it calls a blip an absence


@dataclass(frozen=True)
class Broker:
    """Where the broker is and how to speak to it."""

    host: str
    port: int
    protocol: MQTTProtocolVersion = MQTTProtocolVersion.MQTTv5
    username: str | None = None
    password: str | None = None


class Publisher:
    """Keeps the broker connection and empties the spool through it."""

    def __init__(
        self, *, machine: MachineId, broker: Broker, spool: Spool, clock: PlantClock, agent_version: str
    ) -> None:
        self._machine, self._broker, self._spool, self._clock = machine, broker, spool, clock
        self._agent_version = agent_version
        self._changed = Condition()
        self._stopping = Event()
        self._connected = False
        self._sent = 0  # highest number handed to the broker since the last (re)start of sending
        self._oldest: int | None = None  # lowest number without an ack, and since when it is the lowest
        self._progress = time.monotonic()
        self._patience = RESEND_AFTER
        self._skews: deque[float] = deque(maxlen=9)
        self._client = self._build_client()
        self._sender = Thread(target=self._send_forever, name="sender", daemon=True)

    def start(self) -> None:
        """Begin to connect and to send; returns at once, whether or not a broker is there."""
        self._client.connect_async(
            self._broker.host, self._broker.port, keepalive=30, **self._fresh_session_arguments()
        )
        self._client.loop_start()
        self._sender.start()

    def stop(self) -> None:
        """Say goodbye and disconnect; unacked events stay in the spool for the next start."""
        self._stopping.set()
        self.wake()
        if self._sender.is_alive():
            self._sender.join()
        if self._connected:
            self._publish_state(online=False).wait_for_publish(timeout=2)
        self._connected = False
        self._client.disconnect()
        self._client.loop_stop()

    def wake(self) -> None:
        """Tell the sender that the spool has grown."""
        with self._changed:
            self._changed.notify_all()

    # --- sending -------------------------------------------------------------------------------------

    def _send_forever(self) -> None:
        heartbeat = max(self._clock.wall_seconds(HEARTBEAT), HEARTBEAT_AT_LEAST)
        next_beat = time.monotonic() + heartbeat
        while not self._stopping.is_set():
            try:
                if not (self._connected and self._send_some()):
                    with self._changed:
                        self._changed.wait(timeout=min(0.5, heartbeat))
                if self._connected and time.monotonic() >= next_beat:
                    self._publish_state(online=True)
                    next_beat = time.monotonic() + heartbeat
            except Exception:  # a spool that cannot be read now may be readable soon, and must be tried again
                log.exception("could not send; trying again")
                self._stopping.wait(1.0)

    def _send_some(self) -> bool:
        """Publish one batch if there is anything to send and room under way; say whether it did."""
        self._start_over_if_acks_are_overdue()
        if self._spool.unacked_up_to(self._sent) >= WINDOW:
            return False
        pending = self._spool.pending(self._sent, MAX_EVENTS)
        if not (pending.events or pending.gaps):
            return False
        batch = EventBatch(epoch=self._spool.epoch, events=pending.events, gaps=pending.gaps)
        self._client.publish(topic(self._machine, Channel.EVENTS), encode(batch), qos=1)
        last_gap = pending.gaps[-1].seqs[1] if pending.gaps else 0
        self._sent = pending.events[-1].seq if pending.events else max(self._sent, last_gap)
        return True

    def _start_over_if_acks_are_overdue(self) -> None:
        """Go back to the oldest unacked event once acks have been overdue too long, ever more patiently."""
        now, oldest = time.monotonic(), self._spool.oldest_seq()
        if oldest != self._oldest:
            # Only the oldest counts: acks of newer events must not hide that older ones were lost on the way.
            self._oldest, self._progress, self._patience = oldest, now, RESEND_AFTER
        elif oldest is None or oldest > self._sent:
            self._progress = now
        elif now - self._progress > self._patience:
            log.info("no ack for event %d for %.0f s; sending again from there", oldest, self._patience)
            self._sent, self._progress = 0, now
            self._patience = min(self._patience * 2, RESEND_AT_MOST) * random.uniform(0.9, 1.1)  # noqa: S311

    # --- paho's callbacks, on its network thread ---------------------------------------------------------

    def _on_connect(self, client: mqtt.Client, _data: Any, _flags: Any, reason: ReasonCode, _props: Any) -> None:
        if reason.is_failure:
            log.error("the broker at %s:%d refused: %s", self._broker.host, self._broker.port, reason)
            return
        client.subscribe(topic(self._machine, Channel.ACKS), qos=1)

    def _on_subscribe(self, _c: mqtt.Client, _data: Any, _mid: int, reasons: list[ReasonCode], _p: Any) -> None:
        if any(reason.is_failure for reason in reasons):
            # Without acks nothing ever leaves the spool; a person must mend the broker's ACL.
            log.error("the broker refuses this agent its acks: %s", reasons[0])
        # Sending starts only now: acks for what is sent must find us listening.
        self._sent, self._progress, self._patience = 0, time.monotonic(), RESEND_AFTER
        self._connected = True
        self._publish_state(online=True)
        log.info("connected to %s:%d", self._broker.host, self._broker.port)
        self.wake()

    def _on_disconnect(self, _c: mqtt.Client, _data: Any, _flags: Any, reason: ReasonCode, _props: Any) -> None:
        if reason.value == _TAKEN_OVER:
            log.error("another agent speaks as %s; stop one of them, or give it its own name", self._machine)
        elif self._connected:
            log.warning("lost the broker: %s", reason)
        self._connected = False

    def _on_ack(self, _c: mqtt.Client, _data: Any, message: mqtt.MQTTMessage) -> None:
        try:
            ack = decode(Ack, bytes(message.payload))
        except PayloadRejected as error:
            log.warning("ignored an unreadable ack: %s", error)
            return
        self._skews.append((ack.now - self._clock.now()).total_seconds() * 1000)
        self._spool.forget(ack.epoch, ack.seqs)
        self.wake()

    # --- small parts ---------------------------------------------------------------------------------

    def _publish_state(self, *, online: bool) -> mqtt.MQTTMessageInfo:
        return self._client.publish(
            topic(self._machine, Channel.STATE), encode(self._state(online=online)), qos=1, retain=True
        )

    def _state(self, *, online: bool) -> AgentState:
        return AgentState(
            online=online,
            agent=self._agent_version,
            epoch=self._spool.epoch,
            spooled=self._spool.depth().events,
            skew_ms=round(median(self._skews)) if self._skews else None,
            # A computer whose battery is flat wakes up in 1970; its machine must be heard all the same.
            at=min(max(self._clock.now(), EARLIEST), LATEST - timedelta(seconds=1)),
        )

    def _build_client(self) -> mqtt.Client:
        client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            client_id=f"alarmcast-edge/{self._machine}",  # a slash, which no id can contain
            protocol=self._broker.protocol,
        )
        if self._broker.username is not None:
            client.username_pw_set(self._broker.username, self._broker.password)
        # Agents of one plant lose a broker together; they must not all come back in the same instant.
        client.reconnect_delay_set(random.uniform(0.5, 1.5), random.uniform(20, 40))  # type: ignore[arg-type]  # noqa: S311
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_disconnect = self._on_disconnect
        # By its topic: a broker may send us what we never asked for.
        client.message_callback_add(topic(self._machine, Channel.ACKS), self._on_ack)
        client.suppress_exceptions = True  # an exception in a callback would end paho's thread for good
        client.will_set(
            topic(self._machine, Channel.STATE),
            encode(self._state(online=False)),
            qos=1,
            retain=True,
            **self._will_arguments(),
        )
        return client

    def _will_arguments(self) -> dict[str, Any]:
        if self._broker.protocol != MQTTProtocolVersion.MQTTv5:
            return {}
        properties = Properties(PacketTypes.WILLMESSAGE)  # type: ignore[no-untyped-call]
        properties.WillDelayInterval = WILL_DELAY
        return {"properties": properties}

    def _fresh_session_arguments(self) -> dict[str, Any]:
        """Start clean every time: whatever the old session held, the spool knows better."""
        return {"clean_start": True} if self._broker.protocol == MQTTProtocolVersion.MQTTv5 else {}
