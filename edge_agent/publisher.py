"""Spool to MQTT: sends what is unacked, forgets what the service says is committed, tells how it is.

Nothing is handed to the broker while it is away and only a window of events is under way at a time, so
memory stays flat whatever the network does; the spool on disk is the only queue.
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

RESEND_AFTER, RESEND_AT_MOST, RESEND_GROWTH = 10.0, 60.0, 1.5
HEARTBEAT = timedelta(minutes=5)
MIN_HEARTBEAT = 0.5  # wall seconds, however fast the plant clock runs
NEWS_AT_MOST_EVERY = 1.0  # wall seconds between two states, though something has changed
BACKLOG_EVERY = 10.0  # wall seconds between two states while a backlog drains
_NO_SUBSCRIBER_PAUSE_S = 0.5  # seconds until we ask again whether somebody listens
_RETAINED_STATE_TIMEOUT_S = 0.5  # seconds in which a broker hands over what it has retained
_POLL_INTERVAL_S = 0.5  # seconds between two looks, though nothing has changed
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
        self._patience = ReconnectBackoff()
        self._tls_check = TlsCheck(broker.host, broker.port)
        self._sent = 0  # highest number handed to the broker since sending last began from the oldest
        self._oldest: int | None = None  # lowest number without an ack, and since when it is the lowest
        self._progress, self._overdue_after = time.monotonic(), RESEND_AFTER
        self._skews: deque[float] = deque(maxlen=9)
        self._state_due = 0.0
        self._published: AgentState | None = None  # the last state of this connection, and when it was sent
        self._published_at, self._empty_at = 0.0, time.monotonic()
        self._thread = Thread(target=self._run, name="publisher", daemon=True)
        self._duplicate, self._retained = False, Event()
        self._has_published_state = False
        self._connected_at: datetime | None = None
        self._yielded_to_state_at: datetime | None = None
        self.instance = _instance()
        self.connected = False
        self.trouble: str | None = "not connected yet"
        self.last_ack: float | None = None  # wall time

    def start(self) -> None:
        """Begin to connect and to send; returns at once, whether or not a broker is there."""
        self._thread.start()

    def stop(self, drain_seconds: float = 0.0) -> None:
        """Wait a little for acks of what is under way, say goodbye, disconnect; the spool keeps the rest."""
        self._drain_until = time.monotonic() + drain_seconds
        self._stopping.set()
        self.wake()
        if self._thread.is_alive():
            self._thread.join()

    def wake(self) -> None:
        """Tell the sender that something has changed: the spool, or the connection."""
        with self._changed:
            self._changed.notify_all()

    @property
    def skew_ms(self) -> int | None:
        """The service's plant clock minus ours.

        An ack is always late and never early, so of the last ones the one that took the shortest tells best.
        """
        skews = list(self._skews)
        return round(max(skews)) if skews else None

    @property
    def window(self) -> int:
        """How many events may be under way."""
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
            except Exception as error:  # whatever it was, the machine must be heard again
                log.exception("could not send; connecting again")
                self.connected, self.trouble = False, f"could not send: {error}"
                if link:
                    link.close(self.trouble)
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
        """Look who spoke last in our name, before we do; whoever is there already stays.

        Who connects with a name throws the other out, who comes back and throws us out, and so on for ever. So
        the newcomer gives way, and tells the service that it was here.
        """
        self._retained.wait(_RETAINED_STATE_TIMEOUT_S)
        if not self._duplicate:
            return False
        farewell = encode(self._state(online=False).model_copy(update={"gave_way": True}))
        link.publish(topic(self._machine, Channel.STATE), farewell).wait_for_publish(timeout=2)
        link.disconnect()
        return True

    def _serve(self, link: MqttConnection) -> None:
        """Send, until the connection is over or everything is done."""
        self._resend_from_oldest(overdue=False)
        self.connected, self.trouble = True, link.refused
        self._state_due, self._has_published_state = 0.0, True
        self._connected_at = clamped(self._clock.now())
        log.info("connected to %s", self._broker)
        while not link.over.is_set() and self._has_work():
            self._publish_state_if_due(link)
            if not self._send_batch(link):
                with self._changed:
                    self._changed.wait(timeout=_POLL_INTERVAL_S)
            self.trouble = link.refused

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
        seconds = self._patience.next_delay(lived, rival=self._duplicate)
        if link:
            self.trouble = self._why(link)
        if self._duplicate:
            self.trouble = (
                f"another agent speaks as {self._machine}; stop one of them, or give it its own name "
                f"(this one leaves it the place for {seconds:.0f} s)"
            )
        log.warning(self.trouble)
        self._stopping.wait(seconds)

    def _why(self, link: MqttConnection) -> str | None:
        """Return why a connection has ended; a port that speaks TLS only closes a plain connection."""
        if link.answered:
            self._tls_check.answered()
        elif link.reached and not self._broker.tls and self._tls_check.unanswered():
            return needs_tls(self._broker)
        return link.why

    # --- sending -------------------------------------------------------------------------------------

    def _send_batch(self, link: MqttConnection) -> bool:
        """Publish one batch if there is anything to send and room under way; say whether it did."""
        if link.nobody_listens:
            link.nobody_listens = False
            self._resend_from_oldest(overdue=False)
            self._stopping.wait(_NO_SUBSCRIBER_PAUSE_S)
        self._resend_if_acks_are_overdue()
        room = self._window.size - self._spool.unacked_up_to(self._sent)
        if room < min(self._window.size, MAX_EVENTS) // 4:
            return False  # acks that come one by one must not make messages of one event each
        pending = self._spool.pending(self._sent, min(room, MAX_EVENTS))
        if not (pending.events or pending.gaps):
            return False
        batch = EventBatch(epoch=pending.epoch, events=pending.events, gaps=pending.gaps, instance=self.instance)
        last_gap = pending.gaps[-1].seqs[1] if pending.gaps else 0
        self._sent = pending.events[-1].seq if pending.events else max(self._sent, last_gap)
        with self._window_lock:
            self._window.sent(self._sent)
        link.publish(topic(self._machine, Channel.EVENTS), encode(batch))
        return True

    def _resend_if_acks_are_overdue(self) -> None:
        """Go back to the oldest unacked event once acks have been overdue too long, ever more patiently."""
        now, oldest = time.monotonic(), self._spool.oldest_seq()
        if oldest != self._oldest:
            # Only the oldest counts: acks of newer events must not hide that older ones were lost on the way.
            self._oldest, self._progress, self._overdue_after = oldest, now, RESEND_AFTER
        elif oldest is None or oldest > self._sent:
            self._progress = now
        elif now - self._progress > self._overdue_after:
            log.info("no ack for event %d for %.0f s; sending again from there", oldest, self._overdue_after)
            patience = min(self._overdue_after * RESEND_GROWTH, RESEND_AT_MOST) * random.uniform(0.9, 1.1)  # noqa: S311
            self._resend_from_oldest(overdue=True)
            self._overdue_after = patience

    def _resend_from_oldest(self, *, overdue: bool) -> None:
        self._sent, self._progress, self._overdue_after = 0, time.monotonic(), RESEND_AFTER
        with self._window_lock:
            self._window.reset(overdue=overdue)

    def _on_ack(self, payload: bytes) -> None:
        """Forget what is committed; runs on the connection's own thread."""
        try:
            ack = decode(Ack, payload)
        except PayloadRejected as error:
            log.warning("ignored an unreadable ack: %s", error)
            return
        if ack.epoch != self._spool.epoch or ack.instance not in (None, self.instance):
            return  # about a spool that is gone, or about a copy of ours whose numbers mean other events
        if ack.reused:
            self._note_reused_numbers()
        first_news = not self._skews
        self._skews.append((ack.now - self._clock.now()).total_seconds() * 1000)
        self._spool.delete_acked(ack.epoch, ack.seqs)
        self.last_ack = time.time()
        if ack.seqs:
            with self._window_lock:
                self._window.acked(ack.seqs[-1][1])
        if first_news:
            self._state_due = 0.0  # the service learns at once how far our clock is off
        self.wake()

    def _note_reused_numbers(self) -> None:
        """Begin a new epoch: the service has other events under our numbers, and has stored ours beside them."""
        if self._spool.ask_for_a_new_epoch():
            log.warning(_REUSED)
            self._spool.warn(Note(text=_REUSED, at=clamped(self._clock.now())))

    def _on_state(self, payload: bytes) -> None:
        """See whose state stands at the broker; ours, unless another agent has our name."""
        try:
            state = decode(AgentState, payload)
        except PayloadRejected:
            return
        if self._retained.is_set():
            return
        if not self._is_ours(state):
            alive = state.online and abs(self._clock.now() - state.at) < 2 * HEARTBEAT
            # On MQTT 3.1.1 our coming has just made the broker tell the other's last will. So whoever has spoken
            # since we did is there still, unless it is the very word that we gave way to the last time.
            driven_out = not state.online and self._has_published_state and state.at != self._yielded_to_state_at
            self._duplicate, self._yielded_to_state_at = alive or driven_out, state.at
        self._retained.set()

    def _is_ours(self, state: AgentState) -> bool:
        """Say whether a state is our own, or of the process before us.

        A copy of our spool cannot be told from that process until we have spoken; who speaks after us is a copy.
        """
        if state.instance is None or not self._has_published_state:
            return state.epoch == self._spool.epoch or state.instance == self.instance
        return state.instance == self.instance

    # --- how we are ----------------------------------------------------------------------------------

    def _publish_state_if_due(self, link: MqttConnection) -> None:
        now, state = time.monotonic(), self._state(online=True)
        if state.spooled == 0:
            self._empty_at = now
        if now >= self._state_due or self._is_news(state, now - self._published_at):
            self._state_due = now + max(self._clock.wall_seconds(HEARTBEAT), MIN_HEARTBEAT)
            self._published, self._published_at = state, now
            link.publish(topic(self._machine, Channel.STATE), encode(state), retain=True)

    def _is_news(self, state: AgentState, seconds: float) -> bool:
        """Say whether a state is worth a message before the next heartbeat, ``seconds`` after the last one.

        An event that is acked at once changes nothing; a backlog that shrinks, ends or begins does.
        """
        before = self._published
        if before is None or seconds < NEWS_AT_MOST_EVERY:
            return False
        if (state.epoch, state.skipped, state.warning) != (before.epoch, before.skipped, before.warning):
            return True
        if state.spooled == before.spooled:
            return False
        return state.spooled == 0 or min(seconds, time.monotonic() - self._empty_at) >= BACKLOG_EVERY

    def _publish_state(self, link: MqttConnection, *, online: bool) -> None:
        told = link.publish(topic(self._machine, Channel.STATE), encode(self._state(online=online)), retain=True)
        told.wait_for_publish(timeout=2)

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
    """Return what tells this process from every other: host, process id, chance."""
    host = re.sub(r"[^A-Za-z0-9._-]", "?", socket.gethostname())[:60] or "?"
    return f"{host}/{os.getpid()}/{secrets.token_hex(4)}"
