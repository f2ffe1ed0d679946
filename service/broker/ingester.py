"""Broker to store: gathers messages, commits them, acks the agents, and only then acks the broker."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Event, Thread

from service.broker.link import Delivery, Link
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
            try:
                self._work(first)
            except Exception:  # nothing was acked, so nothing is lost; the stream must go on
                log.exception("a batch failed; its events will be sent again")
                self.counts["failed_batches"] += 1

    def _work(self, first: Delivery) -> None:
        intake = Intake(self._clock.now(), self._policy, self._registry)
        deliveries = self._gather(first, intake)
        receipt = self._commit(intake)
        if receipt is None or self.link is None:
            return
        self._touched(receipt.touched)  # before the acks: who asks after an ack sees what it acked
        for machine, ack in receipt.acks:
            self.link.publish(topic(machine, Channel.ACKS), encode(ack))
        for delivery in deliveries:
            self.link.ack(delivery)
        self.counts.update(receipt.counts)

    def _gather(self, first: Delivery, intake: Intake) -> list[Delivery]:
        deliveries = [first]
        intake.take(_incoming(first))
        deadline = time.monotonic() + self._limits.seconds
        while len(intake.recording.events) < self._limits.events:
            patience = min(deadline - time.monotonic(), _IDLE)
            try:
                delivery = self._inbox.get(timeout=patience) if patience > 0 else self._inbox.get_nowait()
            except Empty:
                break
            deliveries.append(delivery)
            intake.take(_incoming(delivery))
        return deliveries

    def _commit(self, intake: Intake) -> Receipt | None:
        """Commit, waiting for a store that is away; nothing is acked meanwhile, so the broker holds back."""
        wait = _RETRY_AT_LEAST
        while True:
            try:
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


def _incoming(delivery: Delivery) -> Incoming:
    return Incoming(delivery.topic, delivery.payload, delivery.retained)
