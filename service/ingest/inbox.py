"""Between the broker and the store: bounded, and fair to machines whatever one of them sends.

Each machine has a queue of its own, in the order of arrival, and they take turns. While the store keeps up, a
full inbox lets the broker wait, and its queue does. Where that would not help, because the store is away or one
machine takes the place of the others, a message goes back: it is acked to the broker, which then sends on, and
not to its agent, which keeps it and sends it again later. So a machine that floods waits for itself.
"""

import time
from collections import Counter, deque
from dataclasses import dataclass
from threading import Condition, Lock

from service.messaging.mqtt_client import MqttMessage

ACTIVE_WINDOW_S = 60.0  # seconds for which a machine that has spoken is one that may want to speak again
_PAUSE = 0.002  # seconds in which more may come; shorter ones would only wake two threads in turns
_NOTED = 1000  # names of machines that flooded


@dataclass(frozen=True)
class InboxLimits:
    """How much may wait; the broker's receive maximum bounds messages too, where its MQTT knows one."""

    messages: int = 2000
    size: int = 32 << 20
    timeout_s: float = (
        10.0  # seconds without a commit after which the store is away and waiting holds everything up
    )


@dataclass(frozen=True)
class BatchLimits:
    """When a batch is committed: at so many events or so many seconds after its first message."""

    events: int = 2000
    seconds: float = 0.05


class Inbox:
    """Filled by the broker's thread, emptied by the ingester's."""

    def __init__(self, limits: InboxLimits) -> None:
        self._limits = limits
        lock = Lock()
        self._arrived, self._room = Condition(lock), Condition(lock)
        self._queues: dict[str, deque[MqttMessage]] = {}
        self._turns: deque[str] = deque()
        self._waiting = self._size = 0
        self._speaker, self._spoke = "", 0.0
        self._other_spoke = -ACTIVE_WINDOW_S
        self._taken_at = time.monotonic()
        self._closed = False
        self.rejected: Counter[str] = Counter()

    def put(self, delivery: MqttMessage) -> bool:
        """Take a message in; False if it must go back."""
        machine = delivery.topic.rpartition("/")[0]
        size = len(delivery.payload)
        with self._arrived:
            if self._closed:
                return True  # dropped: the broker was not acked and sends it again
            self._record_sender(machine)
            queue = self._queues.get(machine)
            if self._over_fair_share(len(queue) if queue else 0) or not self._has_room(machine, size):
                if len(self.rejected) < _NOTED:
                    self.rejected[machine] += 1
                return False
            queue = self._queues.get(machine)  # it may have been emptied while there was no room
            if queue is None:
                queue = self._queues[machine] = deque()
                self._turns.append(machine)
            queue.append(delivery)
            self._waiting += 1
            self._size += size
            if self._waiting == 1:
                self._arrived.notify()
        return True

    def take(self, limits: BatchLimits, *, timeout: float) -> list[MqttMessage]:
        """Return the next messages, machines taking turns; empty if none came in time."""
        with self._arrived:
            if not self._waiting:
                self._arrived.wait(timeout)
        taken: list[MqttMessage] = []
        events, deadline = 0, time.monotonic() + limits.seconds
        while True:
            before = len(taken)
            with self._arrived:
                while self._turns and events < limits.events:
                    delivery = self._next()
                    taken.append(delivery)
                    events += events_in(delivery)
                self._taken_at = time.monotonic()
                self._room.notify()
            if len(taken) == before or events >= limits.events or time.monotonic() >= deadline:
                return taken
            time.sleep(_PAUSE)

    def close(self) -> None:
        """Accept nothing more, and release the threads that wait for room."""
        with self._arrived:
            self._closed = True
            self._room.notify_all()

    def __len__(self) -> int:
        return self._waiting

    @property
    def size(self) -> int:
        """How many bytes wait."""
        return self._size

    def _next(self) -> MqttMessage:
        machine = self._turns.popleft()
        queue = self._queues[machine]
        delivery = queue.popleft()
        if queue:
            self._turns.append(machine)
        else:
            del self._queues[machine]
        self._waiting -= 1
        self._size -= len(delivery.payload)
        return delivery

    def _has_room(self, machine: str, size: int) -> bool:
        """Wait for room as long as the store takes messages; a machine's first message always finds some."""
        while self._waiting >= self._limits.messages or self._size + size > self._limits.size:
            if self._closed or (machine not in self._queues and self._waiting < 2 * self._limits.messages):
                return True
            if time.monotonic() - self._taken_at > self._limits.timeout_s:
                return False
            self._room.wait(0.1)
        return True

    def _over_fair_share(self, own: int) -> bool:
        """Three quarters full, most of it one machine's, and others are about: they need the last quarter."""
        crowded = 4 * self._waiting >= 3 * self._limits.messages
        return crowded and 2 * own > self._waiting and time.monotonic() - self._other_spoke < ACTIVE_WINDOW_S

    def _record_sender(self, machine: str) -> None:
        """Remember when another sender than the present one last sent."""
        now = time.monotonic()
        if machine != self._speaker:
            self._other_spoke = self._spoke if self._speaker else -ACTIVE_WINDOW_S
            self._speaker = machine
        self._spoke = now


def events_in(delivery: MqttMessage) -> int:
    """Return about how many events a message holds, without reading it."""
    return delivery.payload.count(b'"seq"') or 1
