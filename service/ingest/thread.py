"""Broker to store: takes messages, commits them, and only then acks them to agents and broker."""

import logging
import time
from collections import Counter
from datetime import timedelta
from threading import Event, Thread

from service.database.event_row import IN_TIME, EventRow
from service.errors import Unavailable
from service.ingest.duplicate_agents import DuplicateAgentDetector
from service.ingest.inbox import BatchLimits, Inbox, InboxLimits
from service.ingest.service import IncomingMessage, IngestBatch, IngestResult, Sender, TimePolicy, commit
from service.ingest.stats import IngestStats
from service.machines.events import EventWriter, WriteResult
from service.machines.models import Agent
from service.machines.store import MachineCache
from service.messaging.bus import AlarmEvent, AlarmsRaised, ChangeBus, EventsStored
from service.messaging.mqtt_client import MqttClient, MqttMessage
from wire.acks import acks
from wire.clock import PlantClock
from wire.codec import encode
from wire.timestamps import to_us
from wire.topics import Channel, topic

log = logging.getLogger(__name__)

_OWE_AT_MOST = 0.25  # seconds
_YOUNG_US = 15 * 60 * 1_000_000
_RETRY_AT_LEAST, _RETRY_AT_MOST = 0.2, 5.0


class Ingester:
    """One thread between the broker's inbox and the store."""

    def __init__(
        self,
        *,
        registry: MachineCache,
        recorder: EventWriter,
        clock: PlantClock,
        policy: TimePolicy,
        limits: BatchLimits,
        bus: ChangeBus,
        inbox: InboxLimits | None = None,
        stale_after: timedelta = timedelta(0),
    ) -> None:
        self._registry, self._recorder, self._clock = registry, recorder, clock
        self._policy, self._limits, self._bus = policy, limits, bus
        self._stale_after = stale_after
        self._agent_states: dict[int, Agent] = {}
        self._inbox = Inbox(inbox or InboxLimits())
        self.pace = IngestStats()
        self.twins = DuplicateAgentDetector()
        self._pending_acks: dict[Sender, list[tuple[int, int]]] = {}
        self._reused: set[Sender] = set()  # senders whose numbers were used before, not acked yet
        self._paid_at = 0.0
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="ingester", daemon=True)
        self.link: MqttClient | None = None
        self.counts: Counter[str] = Counter()
        self.last_error: str | None = None

    def on_message(self, delivery: MqttMessage) -> bool:
        """Take a message from the broker; False if there is no room and it must go back."""
        return self._inbox.put(delivery)

    def start(self, link: MqttClient) -> None:
        """Begin to work, acking over ``link``."""
        self.link = link
        self._thread.start()

    def stop(self) -> None:
        """Finish the batch at hand; what waits in the inbox was never acked and will be sent again."""
        self._stopping.set()
        self._inbox.close()
        self._thread.join()

    @property
    def is_alive(self) -> bool:
        """Whether the thread still runs."""
        return self._thread.is_alive()

    @property
    def waiting(self) -> tuple[int, int]:
        """How many messages wait for a commit, and how many bytes they are."""
        return len(self._inbox), self._inbox.size

    @property
    def rejected(self) -> Counter[str]:
        """How many messages of which machines found no room."""
        return self._inbox.rejected

    def _run(self) -> None:
        while not self._stopping.is_set():
            deliveries = self._inbox.take(self._limits, timeout=0.2)
            if deliveries:
                self._process(deliveries)
            if self._pending_acks and (not len(self._inbox) or time.monotonic() - self._paid_at > _OWE_AT_MOST):
                self._flush_acks()
        self._flush_acks()

    def _process(self, deliveries: list[MqttMessage]) -> None:
        """Bring messages to their end: committed and acked, or, one by one, quarantined.

        None may be left without either: the broker sends no message twice on one connection, and keeps a
        place of the receive maximum for each that was not acked.
        """
        try:
            receipt = self._committed(deliveries)
        except Exception as error:  # a defect of ours must not stop the stream for everyone
            log.exception("could not commit a batch of %d messages", len(deliveries))
            self.counts["failed_batches"] += 1
            if len(deliveries) > 1:
                for delivery in deliveries:
                    self._process([delivery])
                return
            receipt = self._quarantined(deliveries[0], error)
        if receipt is None or self.link is None:
            return  # stopping: agents resend what was not acked
        if receipt.affected or receipt.late:  # before the acks: a request after an ack sees what it acked
            self._bus.publish(EventsStored(frozenset(receipt.affected), frozenset(receipt.late)))
        for machine, ack in receipt.acks:
            sender = Sender(machine, ack.epoch, ack.instance)
            self._pending_acks.setdefault(sender, []).extend(ack.seqs)
            if ack.reused:
                self._reused.add(sender)
        for delivery in deliveries:
            self.link.ack(delivery)
        self.counts.update(receipt.counts)
        self._record_metrics(receipt)

    def _record_metrics(self, receipt: IngestResult) -> None:
        """Record rates and lags, and publish new events; must not block."""
        committed_us = to_us(self._clock.now())
        live: list[int] = []
        backfilled: list[int] = []
        for row in receipt.new_events:
            if row.flag == IN_TIME:
                ages = live if self._is_live(row, committed_us) else backfilled
                ages.append(committed_us - row.at_us)
        self.pace.record(receipt.counts["stored"], live, backfilled)
        if receipt.new_events and self._bus.has_subscribers(AlarmsRaised):
            names = {machine.row_id: machine.id for machine in receipt.machines.values()}
            alarms = (
                AlarmEvent(names[row.machine], row.at_us, row.code)
                for row in receipt.new_events
                if row.flag == IN_TIME
            )
            self._bus.publish(AlarmsRaised(tuple(alarms)))

    def _is_live(self, row: EventRow, now_us: int) -> bool:
        """Say whether an event was raised while its agent was connected, and is not from a backlog or an old log.

        Where the beginning of the connection is not known, an event is live if it is young.
        """
        agent = self._agent_states.get(row.machine)
        if agent is None or agent.connected_at is None:
            return now_us - row.at_us < _YOUNG_US
        return row.at_us >= to_us(agent.connected_at)

    def _flush_acks(self) -> None:
        """Tell the agents what is committed: at once where nothing waits, else together with what comes next.

        An ack a batch for each of hundreds of machines would cost more than their events do.
        """
        owed, self._pending_acks, self._paid_at = self._pending_acks, {}, time.monotonic()
        reused, self._reused = self._reused, set()
        now = self._clock.now()
        for sender, seqs in owed.items():
            for ack in acks(sender.epoch, seqs, now, instance=sender.instance, reused=sender in reused):
                if self.link is not None:
                    self.link.publish(topic(sender.machine, Channel.ACKS), encode(ack))

    def _committed(self, deliveries: list[MqttMessage]) -> IngestResult | None:
        """Judge and commit, waiting for a store that is away; the broker holds back while nothing is acked."""
        wait = _RETRY_AT_LEAST
        while True:
            intake = IngestBatch(
                self._clock.now(), self._policy, self._registry, self.twins, self._agent_states, self._stale_after
            )
            try:
                for delivery in deliveries:
                    intake.add(_incoming(delivery))
                receipt = commit(intake, recorder=self._recorder)
            except Unavailable as error:
                self.last_error = str(error)
                self._flush_acks()  # what is committed must not wait for what cannot be
                log.warning("cannot commit, trying again in %.1f s: %s", wait, error)
                if self._stopping.wait(wait):
                    return None
                wait = min(wait * 2, _RETRY_AT_MOST)
            else:
                self.last_error = None
                self._agent_states |= intake.write.agent_states
                return receipt

    def _quarantined(self, delivery: MqttMessage, error: Exception) -> IngestResult:
        """Keep a message that breaks us, unread, and let it go; its agent, if it has one, keeps it too."""
        intake = IngestBatch(self._clock.now(), self._policy, self._registry)
        intake.reject(_incoming(delivery), "internal", repr(error))
        try:
            return commit(intake, recorder=self._recorder)
        except Exception:
            log.exception("could not even quarantine a message of %d bytes", len(delivery.payload))
            self.counts["dropped"] += 1
            return IngestResult([], set(), set(), WriteResult(0, 0, 0), Counter())


def _incoming(delivery: MqttMessage) -> IncomingMessage:
    return IncomingMessage(delivery.topic, delivery.payload, delivery.retained)
