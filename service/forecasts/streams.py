"""Queues of open streams: filled from the change bus, never waiting for a reader.

Publishers run in the threads of ingest and forecasts. Each subscription has a bounded queue of alarms; a slow
reader loses the oldest and gets their number. Of forecasts only the newest of each machine waits.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import NamedTuple

from service.errors import TooMany, Unavailable
from service.forecasts.cache import ForecastMade
from service.http.principal import Sites, current_sites, current_user
from service.http.rate_limit import ConcurrencyLimit, LimitReached
from service.messaging.bus import AlarmEvent, AlarmsRaised, ChangeBus, StreamsClosed
from wire.enums import StreamKind
from wire.identity import MachineId

_ALL = "all"
_RETRY_AFTER_S = 30.0


@dataclass(frozen=True)
class StreamFilter:
    """What a stream subscribes to; ``sites`` are those its reader may see, ``owner`` whose stream it is."""

    kinds: frozenset[StreamKind] = frozenset(StreamKind)
    site: str | None = None
    machine: str | None = None
    sites: Sites = None
    owner: str | None = None  # None is the service's own

    def matches(self, machine: MachineId) -> bool:
        named = self.site in (None, machine.site) and self.machine in (None, machine.machine)
        return named and (self.sites is None or machine.site in self.sites)


class StreamBatch(NamedTuple):
    """What has waited for a reader; alarms first, as forecasts are made from them."""

    missed: int
    alarms: list[AlarmEvent]
    forecasts: list[bytes]


class Subscription:
    """The queue of one stream; ``wake`` is called, from any thread, when something waits or the hub is closed."""

    def __init__(self, hub: "StreamHub", wanted: StreamFilter, wake: Callable[[], None], max_alarms: int) -> None:
        self._hub, self.filter, self._wake = hub, wanted, wake
        self._lock = Lock()
        self._alarms: deque[AlarmEvent] = deque(maxlen=max_alarms)
        self._forecasts: dict[MachineId, bytes] = {}
        self._missed = 0
        self._asleep = True

    def take(self) -> StreamBatch:
        """Return what waits and empty the queue."""
        with self._lock:
            batch = StreamBatch(self._missed, list(self._alarms), list(self._forecasts.values()))
            self._alarms.clear()
            self._forecasts.clear()
            self._missed, self._asleep = 0, True
        return batch

    def close(self) -> None:
        """Unsubscribe; may be called again."""
        self._hub.unsubscribe(self)

    def put_alarms(self, alarms: Sequence[AlarmEvent], *, missed: int) -> None:
        """Queue alarms; the oldest are dropped and counted where there is no room."""
        with self._lock:
            room = (self._alarms.maxlen or 0) - len(self._alarms)
            self._missed += missed + max(0, len(alarms) - room)
            self._alarms.extend(alarms)
        self.wake()

    def put_forecast(self, machine: MachineId, encoded: bytes) -> None:
        """Queue a forecast in place of the machine's last."""
        with self._lock:
            self._forecasts.pop(machine, None)
            self._forecasts[machine] = encoded
        self.wake()

    def wake(self) -> None:
        """Wake the reader, once until it has taken what waits: waking is what costs most."""
        with self._lock:
            asleep, self._asleep = self._asleep, False
        if asleep:
            self._wake()


class StreamHub:
    """Every open stream of this process; it is subscribed to the bus only while there is one."""

    def __init__(
        self, bus: ChangeBus, *, max_streams: int, max_per_owner: int | None = None, max_queued: int = 1000
    ) -> None:
        self._bus, self._max_streams, self._max_queued = bus, max_streams, max_queued
        self._max_per_owner = max_streams if max_per_owner is None else max_per_owner
        self._places = ConcurrencyLimit()
        self._lock = Lock()
        self._subscriptions: tuple[Subscription, ...] = ()
        self._leave_bus: list[Callable[[], None]] = []
        self.closed = False
        self.ping_interval_s = 15.0  # after which an idle stream sends a comment

    @property
    def count(self) -> int:
        """The number of open streams, those of jobs included."""
        return self._places.count(_ALL)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Count a stream of the current user that is not subscribed here, as long as it is open."""
        limits = self._limits(_current_owner())
        self._take_place(limits)
        try:
            yield
        finally:
            self._places.give_back(limits)

    def subscribe_for_user(self, wanted: StreamFilter, wake: Callable[[], None]) -> Subscription:
        """Subscribe to the sites of the current user, and count the stream as theirs."""
        return self.subscribe(replace(wanted, sites=current_sites(), owner=_current_owner()), wake)

    def subscribe(self, wanted: StreamFilter, wake: Callable[[], None]) -> Subscription:
        """Return a new subscription, or raise :class:`Unavailable` if there are too many."""
        if self.closed:
            raise Unavailable("The service stops; listen again when it has started.")
        self._take_place(self._limits(wanted.owner))
        with self._lock:
            new = Subscription(self, wanted, wake, self._max_queued)
            self._subscriptions = (*self._subscriptions, new)
            if not self._leave_bus:
                self._leave_bus = [
                    self._bus.subscribe(AlarmsRaised, self._on_alarms),
                    self._bus.subscribe(ForecastMade, self._on_forecast),
                ]
        return new

    def unsubscribe(self, subscription: Subscription) -> None:
        with self._lock:
            if subscription not in self._subscriptions:
                return
            self._subscriptions = tuple(other for other in self._subscriptions if other is not subscription)
            if not self._subscriptions:
                for leave in self._leave_bus:
                    leave()
                self._leave_bus = []
        self._places.give_back(self._limits(subscription.filter.owner))

    def close(self) -> None:
        """End every stream at once and refuse new ones: a server that stops must not wait for readers."""
        with self._lock:
            self.closed = True
            subscriptions = self._subscriptions
        for subscription in subscriptions:
            subscription.wake()
        self._bus.publish(StreamsClosed())

    def _on_forecast(self, event: ForecastMade) -> None:
        newest = event.newest
        for subscription in self._subscriptions:
            wanted = subscription.filter
            if StreamKind.FORECAST in wanted.kinds and wanted.matches(newest.machine):
                subscription.put_forecast(newest.machine, newest.encoded)

    def _on_alarms(self, event: AlarmsRaised) -> None:
        by_machine: dict[MachineId, list[AlarmEvent]] = {}
        for alarm in event.alarms:
            by_machine.setdefault(alarm.machine, []).append(alarm)
        for subscription in self._subscriptions:
            wanted = subscription.filter
            if StreamKind.ALARM in wanted.kinds:
                alarms = [a for machine, some in by_machine.items() if wanted.matches(machine) for a in some]
                if alarms or event.missed:
                    subscription.put_alarms(alarms, missed=event.missed)

    def _limits(self, owner: str | None) -> dict[str, int]:
        own = {} if owner is None else {f"user {owner}": self._max_per_owner}
        return own | {_ALL: self._max_streams}

    def _take_place(self, limits: dict[str, int]) -> None:
        try:
            self._places.take(limits)
        except LimitReached as full:
            if full.name == _ALL:
                raise Unavailable(
                    f"{full.most} streams are open already; close some, or raise ALARMCAST_STREAM_LIMIT."
                ) from None
            raise TooMany(
                f"You have {full.most} streams open already. Close some, or raise ALARMCAST_STREAMS_PER_USER.",
                wait=_RETRY_AFTER_S,
            ) from None


def _current_owner() -> str | None:
    """Return whose streams are counted by name: everybody's but the service's own."""
    principal = current_user()
    return None if principal is None or principal.is_own else principal.name
