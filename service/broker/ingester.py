"""Broker to store: gathers messages, commits them, acks the agents, and only then acks the broker."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Event, Thread

from service.broker.link import Delivery, Link
from service.core.recording import Recorded
from service.errors import Unavailable
from service.flows.ports import Recorder
from service.flows.record_events import Incoming, Intake, Receipt, TimePolicy, record
from service.flows.registry import Registry
from wire.clock import PlantClock
from wire.codec import encode
from wire.identity import MachineId
from wire.topics import Channel, topic

log = logging.getLogger(__name__)

_IDLE = 0.005  # seconds without a message after which a started batch is committed
_RETRY_AT_LEAST, _RETRY_AT_MOST = 0.2, 5.0


@dataclass(frozen=True)
class BatchLimits:
    """When a batch is committed: at so many events or so many seconds after its first message."""

    events: int = 500
    seconds: float = 0.05


class Ingester:
    """One thread between the broker's inbox and the store."""

    def __init__(
        self,
        *,
        registry: Registry,
        recorder: Recorder,
        clock: PlantClock,
        policy: TimePolicy,
        limits: BatchLimits,
        touched: Callable[[Iterable[MachineId]], None],
    ) -> None:
        self._registry, self._recorder, self._clock = registry, recorder, clock
        self._policy, self._limits, self._touched = policy, limits, touched
        self._inbox: SimpleQueue[Delivery] = SimpleQueue()
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="ingester", daemon=True)
        self.link: Link | None = None
        self.counts: Counter[str] = Counter()
        self.complaint: str | None = None

    def deliver(self, delivery: Delivery) -> None:
        """Take a message from the broker; the receive maximum bounds how many wait here."""
        self._inbox.put(delivery)

    def start(self, link: Link) -> None:
        """Begin to work, acking over ``link``."""
        self.link = link
        self._thread.start()

    def stop(self) -> None:
        """Finish the batch at hand; what waits in the inbox was never acked and will be sent again."""
        self._stopping.set()
        self._thread.join()

    @property
    def is_alive(self) -> bool:
        """Whether the thread still runs."""
        return self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                first = self._inbox.get(timeout=0.2)
            except Empty:
                continue
            self._settle(self._gather(first))

    def _gather(self, first: Delivery) -> list[Delivery]:
        deliveries = [first]
        events, deadline = _events_in(first), time.monotonic() + self._limits.seconds
        while events < self._limits.events and (patience := min(deadline - time.monotonic(), _IDLE)) > 0:
            try:
                delivery = self._inbox.get(timeout=patience)
            except Empty:
                break
            deliveries.append(delivery)
            events += _events_in(delivery)
        return deliveries

    def _settle(self, deliveries: list[Delivery]) -> None:
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
                    self._settle([delivery])
                return
            receipt = self._quarantined(deliveries[0], error)
        if receipt is None or self.link is None:
            return  # told to stop: what was not acked will be sent again
        self._touched(receipt.touched)  # before the acks: who asks after an ack sees what it acked
        for machine, ack in receipt.acks:
            self.link.publish(topic(machine, Channel.ACKS), encode(ack))
        for delivery in deliveries:
            self.link.ack(delivery)
        self.counts.update(receipt.counts)

    def _committed(self, deliveries: list[Delivery]) -> Receipt | None:
        """Judge and commit, waiting for a store that is away; the broker holds back while nothing is acked."""
        wait = _RETRY_AT_LEAST
        while True:
            intake = Intake(self._clock.now(), self._policy, self._registry)
            try:
                for delivery in deliveries:
                    intake.take(_incoming(delivery))
                receipt = record(intake, recorder=self._recorder)
            except Unavailable as error:
                self.complaint = str(error)
                log.warning("cannot commit, trying again in %.1f s: %s", wait, error)
                if self._stopping.wait(wait):
                    return None
                wait = min(wait * 2, _RETRY_AT_MOST)
            else:
                self.complaint = None
                return receipt

    def _quarantined(self, delivery: Delivery, error: Exception) -> Receipt:
        """Keep a message that breaks us, unread, and let it go; its agent, if it has one, keeps it too."""
        intake = Intake(self._clock.now(), self._policy, self._registry)
        intake.refuse(_incoming(delivery), "internal", repr(error))
        try:
            return record(intake, recorder=self._recorder)
        except Exception:
            log.exception("could not even quarantine a message of %d bytes", len(delivery.payload))
            self.counts["dropped"] += 1
            return Receipt([], set(), Recorded(0, 0, 0), Counter())


def _events_in(delivery: Delivery) -> int:
    """Return about how many events a message holds, without reading it."""
    return delivery.payload.count(b'"seq"') or 1


def _incoming(delivery: Delivery) -> Incoming:
    return Incoming(delivery.topic, delivery.payload, delivery.retained)
