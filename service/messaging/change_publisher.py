"""The thread that tells other processes what has happened here, so that nobody here waits for it."""

from collections import deque
from collections.abc import Callable, Iterable
from threading import Event, Lock

from service.machines.models import Machine
from service.messaging.background import BackgroundThread
from service.messaging.change_event import ChangeEvent, ChangeKind
from service.messaging.pubsub import AlarmEvent, EventBus, Filter
from wire.enums import StreamKind
from wire.identity import MachineId

_BATCH_DELAY_S = 0.03  # seconds in which what happens is told together
_MACHINES, _ALARMS = 60, 40  # in one message, which PostgreSQL limits to 8,000 bytes
_MOST_ALARMS = 400  # at a time; who listens is told how many more there were
_WAITING = 1000  # messages of other kinds


class ChangePublisher(BackgroundThread):
    """Gathers, and sends; what cannot be sent is dropped, because whoever listens again looks at everything."""

    def __init__(self, send: Callable[[list[ChangeEvent]], None], feed: EventBus) -> None:
        super().__init__("telegraph")
        self._send = send
        self._lock, self._wake = Lock(), Event()
        self._touched: set[MachineId] = set()
        self._late: set[MachineId] = set()
        self._others: deque[ChangeEvent] = deque(maxlen=_WAITING)
        self._alarms = feed.subscribe(Filter(kinds=frozenset({StreamKind.ALARM}), relayed=False), self._wake.set)

    def touched(self, machines: Iterable[MachineId]) -> None:
        """Tell that something arrived for these machines."""
        with self._lock:
            self._touched.update(machines)
        self._wake.set()

    def late(self, machines: Iterable[Machine]) -> None:
        """Tell that something of an earlier time arrived for these machines."""
        with self._lock:
            self._late.update(machine.id for machine in machines)
        self._wake.set()

    def publish(self, signal: ChangeEvent) -> None:
        """Tell anything else."""
        self._others.append(signal)
        self._wake.set()

    def stop(self) -> None:
        """Send what waits, and end."""
        self._stopping.set()
        self._wake.set()
        super().stop()
        self._alarms.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait()
            self._stopping.wait(_BATCH_DELAY_S)
            self._wake.clear()
            try:
                gathered = self._gathered()
                if gathered:
                    self._send(gathered)
                self.complaint = None
            except Exception as error:  # noqa: BLE001 - told, and tried again
                self._record_error(error)

    def _gathered(self) -> list[ChangeEvent]:
        with self._lock:
            touched, self._touched = self._touched, set()
            late, self._late = self._late, set()
        others = [self._others.popleft() for _ in range(len(self._others))]
        batch = self._alarms.take()
        return [*others, *batch_events(touched, late, batch.alarms, missed=batch.missed)]


def batch_events(
    touched: Iterable[MachineId], late: Iterable[MachineId], alarms: list[AlarmEvent], *, missed: int
) -> list[ChangeEvent]:
    """Put what has arrived into messages that are small enough."""
    pieces = [
        ChangeEvent(ChangeKind.EVENTS_STORED, {"machines": some}) for some in _some(map(str, touched), _MACHINES)
    ]
    pieces += [ChangeEvent(ChangeKind.EVENTS_STORED, {"late": some}) for some in _some(map(str, late), _MACHINES)]
    told = [[str(one.machine), one.at_us, one.code] for one in alarms[:_MOST_ALARMS]]
    missed += len(alarms) - len(told)
    for first in range(0, len(told), _ALARMS):
        pieces.append(ChangeEvent(ChangeKind.EVENTS_STORED, {"alarms": told[first : first + _ALARMS]}))
    if missed:
        pieces.append(ChangeEvent(ChangeKind.EVENTS_STORED, {"missed": missed}))
    return pieces


def _some(names: Iterable[str], most: int) -> Iterable[list[str]]:
    ordered = sorted(names)
    return (ordered[first : first + most] for first in range(0, len(ordered), most))
