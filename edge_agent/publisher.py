"""Spool to MQTT: sends unacked events, deletes acked ones, and publishes the agent's state.

Nothing is queued in memory while the broker is away, and the events in flight are limited; the spool on disk is
the only queue.
"""

import logging
import os
import random
import re
import secrets
import socket
import time
from collections import deque
from datetime import datetime, timedelta
from threading import Condition, Event, Lock, Thread

from edge_agent.backoff import ReconnectBackoff
from edge_agent.flow_control import SendWindow
from edge_agent.mqtt_connection import MqttConnection, Will
from edge_agent.spool import Spool
from edge_agent.tls_check import TlsCheck, needs_tls
from wire.acks import Ack
from wire.clock import PlantClock
from wire.codec import decode, encode
from wire.errors import PayloadRejected
from wire.events import MAX_EVENTS, EventBatch
from wire.identity import MachineId
from wire.mqtt import BrokerConfig
from wire.state import AgentState, Note
from wire.timestamps import clamped
from wire.topics import Channel, agent_name, topic

log = logging.getLogger(__name__)

RESEND_AFTER_S, MAX_RESEND_AFTER_S, RESEND_GROWTH = 10.0, 60.0, 1.5
HEARTBEAT = timedelta(minutes=5)
MIN_HEARTBEAT_S = 0.5  # wall time, however fast the plant clock runs
MIN_STATE_INTERVAL_S = 1.0  # between two states that differ
BACKLOG_STATE_INTERVAL_S = 10.0  # while a backlog drains
_NO_SUBSCRIBER_PAUSE_S = 0.5  # until the next attempt
_RETAINED_STATE_TIMEOUT_S = 0.5
_POLL_INTERVAL_S = 0.5
_REUSED = (
    "Numbers of this spool were used before: this computer was restored from an image, or its spool was copied. "
    "All alarms are stored and a new epoch begins by itself. If a copy of this computer runs, stop it."
)


class Publisher:
    """Keeps a connection to the broker and empties the spool through it."""

    def __init__(
        self, *, machine: MachineId, broker: BrokerConfig, spool: Spool, clock: PlantClock, agent_version: str
    ) -> None:
        self._machine, self._broker, self._spool, self._clock = machine, broker, spool, clock
        self._agent_version = agent_version
        self._changed, self._stopping = Condition(), Event()
        self._drain_until = 0.0
        self._window, self._window_lock = SendWindow(), Lock()
        self._backoff = ReconnectBackoff()
        self._tls_check = TlsCheck(broker.host, broker.port)
        self._sent = 0  # highest seq published since the last resend began
        self._oldest: int | None = None  # lowest unacked seq, and since when
        self._progress, self._overdue_after = time.monotonic(), RESEND_AFTER_S
        self._skews: deque[float] = deque(maxlen=9)
        self._state_due = 0.0
        self._published: AgentState | None = None  # the last state of this connection, and when it was sent
        self._published_at, self._empty_at = 0.0, time.monotonic()
        self._thread = Thread(target=self._run, name=f"publisher {machine}", daemon=True)
        self._duplicate, self._retained = False, Event()
        self._has_published_state = False
        self._connected_at: datetime | None = None
        self._yielded_to_state_at: datetime | None = None
        self.instance = _instance()
        self.connected = False
        self.error: str | None = "not connected yet"
        self.last_ack: float | None = None  # wall time

    def start(self) -> None:
        """Start the thread; returns at once, with or without a broker."""
        self._thread.start()

    def stop(self, drain_seconds: float = 0.0) -> None:
        """Wait up to ``drain_seconds`` for acks, then disconnect; the spool keeps the rest."""
        self._drain_until = time.monotonic() + drain_seconds
        self._stopping.set()
        self.wake()
        if self._thread.is_alive():
            self._thread.join()

    def wake(self) -> None:
        """Wake the thread after a change of the spool or the connection."""
        with self._changed:
            self._changed.notify_all()

    @property
    def skew_ms(self) -> int | None:
        """The service's plant clock minus ours.

        An ack is always late and never early, so of the last ones the fastest is the best estimate.
        """
        skews = list(self._skews)
        return round(max(skews)) if skews else None

    @property
    def window(self) -> int:
        """How many events may be in flight."""
        return self._window.size

    # --- connecting ----------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            lived, link = None, None
            try:
                link = self._open()
                if link.ready.is_set() and not self._duplicate_agent_connected(link):
                    self._serve(link)
                    lived = time.monotonic() - (link.ready_at or 0)
                self.connected = False
                self._disconnect(link)
            except Exception as error:  # whatever it was, the agent must reconnect
                log.exception("could not send; connecting again")
                self.connected, self.error = False, f"could not send: {error}"
                if link:
                    link.close(self.error)
            if not self._stopping.is_set():
                self._wait_before_reconnect(link, lived)

    def _open(self) -> MqttConnection:
        self._duplicate, self._retained = False, Event()
        link = MqttConnection(
            self._broker,
            client_id=agent_name(self._machine),
            subscriptions={
                topic(self._machine, Channel.ACKS): self._on_ack,
                topic(self._machine, Channel.STATE): self._on_state,
            },
            will=Will(topic(self._machine, Channel.STATE), encode(self._state(online=False))),
            changed=self.wake,
        )
        link.open()
        return link

    def _duplicate_agent_connected(self, link: MqttConnection) -> bool:
        """Return whether another agent has this name; then disconnect and leave it the connection.

        The broker disconnects a client when another one connects with its client id, so two agents of one name
        would disconnect each other for ever. The newcomer yields, and reports that to the service.
        """
        self._retained.wait(_RETAINED_STATE_TIMEOUT_S)
        if not self._duplicate:
            return False
        last_state = encode(self._state(online=False).model_copy(update={"gave_way": True}))
        link.publish(topic(self._machine, Channel.STATE), last_state).wait_for_publish(timeout=2)
        link.disconnect()
        return True

    def _serve(self, link: MqttConnection) -> None:
        """Send until the connection ends or the agent has stopped."""
        self._resend_from_oldest(overdue=False)
        self.connected, self.error = True, link.refused
        self._state_due, self._has_published_state = 0.0, True
        self._connected_at = clamped(self._clock.now())
        log.info("connected to %s", self._broker)
        while not link.over.is_set() and self._has_work():
            self._publish_state_if_due(link)
            if not self._send_batch(link):
                with self._changed:
                    self._changed.wait(timeout=_POLL_INTERVAL_S)
            self.error = link.refused

    def _has_work(self) -> bool:
        if not self._stopping.is_set():
            return True
        return time.monotonic() < self._drain_until and self._spool.oldest_seq() is not None

    def _disconnect(self, link: MqttConnection) -> None:
        if link.over.is_set():
            return
        if link.ready.is_set():
            self._publish_state(link, online=False)
        link.disconnect()

    def _wait_before_reconnect(self, link: MqttConnection | None, lived: float | None) -> None:
        seconds = self._backoff.next_delay(lived, duplicate=self._duplicate)
        if link:
            self.error = self._end_reason(link)
        if self._duplicate:
            self.error = (
                f"another agent is connected as {self._machine}; stop one of them, or give it its own name "
                f"(this one reconnects in {seconds:.0f} s)"
            )
        log.warning(self.error)
        self._stopping.wait(seconds)

    def _end_reason(self, link: MqttConnection) -> str | None:
        """Return why a connection has ended; a TLS port only closes plain connections."""
        if link.answered:
            self._tls_check.answered()
        elif link.reached and not self._broker.tls and self._tls_check.unanswered():
            return needs_tls(self._broker)
        return link.error

    # --- sending -------------------------------------------------------------------------------------

    def _send_batch(self, link: MqttConnection) -> bool:
        """Publish one batch if there is one and the window allows it; return whether it did."""
        if link.no_subscribers:
            link.no_subscribers = False
            self._resend_from_oldest(overdue=False)
            self._stopping.wait(_NO_SUBSCRIBER_PAUSE_S)
        self._resend_if_acks_are_overdue()
        room = self._window.size - self._spool.unacked_up_to(self._sent)
        if room < min(self._window.size, MAX_EVENTS) // 4:
            return False  # else single acks would cause messages of one event each
        pending = self._spool.pending(self._sent, min(room, MAX_EVENTS))
        if pending.is_empty:
            return False
        batch = EventBatch(
            epoch=pending.epoch,
            events=pending.events,
            gaps=pending.gaps,
            instance=self.instance,
            transitions=pending.transitions,
            codes=pending.codes,
        )
        self._sent = max(self._sent, pending.last_seq)
        with self._window_lock:
            self._window.sent(self._sent)
        link.publish(topic(self._machine, Channel.EVENTS), encode(batch))
        return True

    def _resend_if_acks_are_overdue(self) -> None:
        """Resend from the oldest unacked event when its ack is overdue, after growing intervals."""
        now, oldest = time.monotonic(), self._spool.oldest_seq()
        if oldest != self._oldest:
            # Only the oldest counts: acks of newer events must not hide the loss of older ones.
            self._oldest, self._progress, self._overdue_after = oldest, now, RESEND_AFTER_S
        elif oldest is None or oldest > self._sent:
            self._progress = now
        elif now - self._progress > self._overdue_after:
            log.info("no ack for event %d for %.0f s; sending again from there", oldest, self._overdue_after)
            overdue_after = min(self._overdue_after * RESEND_GROWTH, MAX_RESEND_AFTER_S) * random.uniform(0.9, 1.1)  # noqa: S311
            self._resend_from_oldest(overdue=True)
            self._overdue_after = overdue_after

    def _resend_from_oldest(self, *, overdue: bool) -> None:
        self._sent, self._progress, self._overdue_after = 0, time.monotonic(), RESEND_AFTER_S
        with self._window_lock:
            self._window.reset(overdue=overdue)

    def _on_ack(self, payload: bytes) -> None:
        """Delete committed events; runs on the connection's thread."""
        try:
            ack = decode(Ack, payload)
        except PayloadRejected as error:
            log.warning("ignored an unreadable ack: %s", error)
            return
        if ack.epoch != self._spool.epoch or ack.instance not in (None, self.instance):
            return  # of an earlier spool, or of a copy of this one whose numbers mean other events
        if ack.reused:
            self._handle_reused_numbers()
        is_first = not self._skews
        self._skews.append((ack.now - self._clock.now()).total_seconds() * 1000)
        self._spool.delete_acked(ack.epoch, ack.seqs)
        self.last_ack = time.time()
        if ack.seqs:
            with self._window_lock:
                self._window.acked(ack.seqs[-1][1])
        if is_first:
            self._state_due = 0.0  # report the clock skew at once
        self.wake()

    def _handle_reused_numbers(self) -> None:
        """Begin a new epoch: the service has other events with our numbers, and has stored ours beside them."""
        if self._spool.request_new_epoch():
            log.warning(_REUSED)
            self._spool.warn(Note(text=_REUSED, at=clamped(self._clock.now())))

    def _on_state(self, payload: bytes) -> None:
        """Check whether the retained state is ours, or that of another agent with the same name."""
        try:
            state = decode(AgentState, payload)
        except PayloadRejected:
            return
        if self._retained.is_set():
            return
        if not self._is_ours(state):
            alive = state.online and abs(self._clock.now() - state.at) < 2 * HEARTBEAT
            # On MQTT 3.1.1 our connection has just made the broker publish the other's last will. So an agent that
            # has published since we did still runs, unless we have yielded to this very state before.
            was_disconnected_by_us = (
                not state.online and self._has_published_state and state.at != self._yielded_to_state_at
            )
            self._duplicate, self._yielded_to_state_at = alive or was_disconnected_by_us, state.at
        self._retained.set()

    def _is_ours(self, state: AgentState) -> bool:
        """Return whether a state is our own, or of the process before us.

        A copy of our spool looks like that process until we have published a state; any other state after that is
        of a copy.
        """
        if state.instance is None or not self._has_published_state:
            return state.epoch == self._spool.epoch or state.instance == self.instance
        return state.instance == self.instance

    # --- state ---------------------------------------------------------------------------------------

    def _publish_state_if_due(self, link: MqttConnection) -> None:
        now, state = time.monotonic(), self._state(online=True)
        if state.spooled == 0:
            self._empty_at = now
        if now >= self._state_due or self._is_worth_sending(state, now - self._published_at):
            self._state_due = now + max(self._clock.wall_seconds(HEARTBEAT), MIN_HEARTBEAT_S)
            self._published, self._published_at = state, now
            link.publish(topic(self._machine, Channel.STATE), encode(state), retain=True)

    def _is_worth_sending(self, state: AgentState, seconds: float) -> bool:
        """Return whether a state is sent before the next heartbeat, ``seconds`` after the last one.

        An event that is acked at once is no reason; a backlog that grows, shrinks or ends is.
        """
        before = self._published
        if before is None or seconds < MIN_STATE_INTERVAL_S:
            return False
        if (state.epoch, state.skipped, state.warning) != (before.epoch, before.skipped, before.warning):
            return True
        if state.spooled == before.spooled:
            return False
        return state.spooled == 0 or min(seconds, time.monotonic() - self._empty_at) >= BACKLOG_STATE_INTERVAL_S

    def _publish_state(self, link: MqttConnection, *, online: bool) -> None:
        message = link.publish(
            topic(self._machine, Channel.STATE), encode(self._state(online=online)), retain=True
        )
        message.wait_for_publish(timeout=2)

    def _state(self, *, online: bool) -> AgentState:
        return AgentState(
            online=online,
            agent=self._agent_version,
            epoch=self._spool.epoch,
            spooled=self._spool.depth().events,
            skew_ms=self.skew_ms,
            at=clamped(self._clock.now()),
            instance=self.instance,
            connected_at=self._connected_at,
            skipped=self._spool.skipped,
            last_skipped=self._spool.last_skipped,
            warning=self._spool.warning,
        )


def _instance() -> str:
    """Return a unique name of this process: host, process id, random."""
    host = re.sub(r"[^A-Za-z0-9._-]", "?", socket.gethostname())[:60] or "?"
    return f"{host}/{os.getpid()}/{secrets.token_hex(4)}"
