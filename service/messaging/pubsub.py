"""What has just happened, to whoever listens now: never waits for a reader, never slows who tells.

Publishers run in the threads of ingest and of forecasts. Each subscription has a bounded queue of alarms; one that
is not read in time loses the oldest, and is told how many. Of forecasts only the newest of each machine waits:
whoever has it needs no other.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

from service.database.event_row import IN_TIME, EventRow
from service.errors import TooMany, Unavailable
from service.http.principal import Sites
from service.machines.models import Machine
from service.messaging.concurrency_limit import Full, Places
from wire.enums import StreamKind
from wire.identity import MachineId

_ALL = "all"
_WAIT_FOR_A_PLACE = 30.0  # seconds


@dataclass(eq=False, slots=True)
class AlarmEvent:
    """An alarm that was just committed; ``encoded`` is filled by the first who needs it in words."""

    machine: MachineId
    at_us: int
    code: int
    encoded: bytes | None = None


@dataclass(frozen=True)
class Filter:
    """What a listener wants to hear of; all machines unless told otherwise."""

    kinds: frozenset[StreamKind] = frozenset(StreamKind)
    site: str | None = None
    machine: str | None = None
    sites: Sites = None  # those that the listener may hear of
    relayed: bool = True  # what other processes tell, too; not for the listener that tells them
    owner: str | None = None  # whose stream it is, counted by name; None is the service's own

    def wants(self, machine: MachineId) -> bool:
        """Say whether it is about this machine."""
        named = self.site in (None, machine.site) and self.machine in (None, machine.machine)
        return named and (self.sites is None or machine.site in self.sites)


class Batch(NamedTuple):
    """What has waited for a listener, alarms first, as they are what forecasts are made from."""

    missed: int
    alarms: list[AlarmEvent]
    forecasts: list[bytes]


class Subscription:
    """One listener's place; ``wake`` is called, from any thread, when something waits or the feed has ended."""

    def __init__(self, feed: "EventBus", wish: Filter, wake: Callable[[], None], most: int) -> None:
        self._feed, self.wish, self._wake = feed, wish, wake
        self._lock = Lock()
        self._alarms: deque[AlarmEvent] = deque(maxlen=most)
        self._forecasts: dict[MachineId, bytes] = {}
        self._missed = 0
        self._asleep = True

    def take(self) -> Batch:
        """Return and forget what waits."""
        with self._lock:
            batch = Batch(self._missed, list(self._alarms), list(self._forecasts.values()))
            self._alarms.clear()
            self._forecasts.clear()
            self._missed, self._asleep = 0, True
        return batch

    def close(self) -> None:
        """Listen no more; harmless if it is closed."""
        self._feed.unsubscribe(self)

    def put_alarms(self, alarms: Sequence[AlarmEvent], *, missed: int = 0) -> None:
        """Let alarms wait, at the price of the oldest where there is no room; ``missed`` were lost on the way."""
        with self._lock:
            room = (self._alarms.maxlen or 0) - len(self._alarms)
            self._missed += missed + max(0, len(alarms) - room)
            self._alarms.extend(alarms)
        self.wake()

    def put_forecast(self, machine: MachineId, encoded: bytes) -> None:
        """Let a forecast wait in place of the machine's last."""
        with self._lock:
            self._forecasts.pop(machine, None)
            self._forecasts[machine] = encoded
        self.wake()

    def wake(self) -> None:
        """Wake the listener, once until it has taken what waits: waking is what costs most."""
        with self._lock:
            asleep, self._asleep = self._asleep, False
        if asleep:
            self._wake()


class EventBus:
    """Where what happens is told; ``listened`` is all that a publisher need look at while nobody listens."""

    def __init__(self, *, most_listeners: int, most_of_one: int | None = None, most_waiting: int = 1000) -> None:
        self._most_listeners, self._most_waiting = most_listeners, most_waiting
        self._most_of_one = most_listeners if most_of_one is None else most_of_one
        self._places = Places()
        self._lock = Lock()
        self._subscriptions: tuple[Subscription, ...] = ()
        self.has_subscribers = False
        self.closed = False
        self.when_closed: list[Callable[[], None]] = []  # what else ends with it
        self.ping = 15.0  # seconds after which a silent stream says that it is still there

    @property
    def subscriber_count(self) -> int:
        """How many listen now, followers of jobs included, without the one that tells the other processes."""
        return self._places.count(_ALL)

    def take_place(self, owner: str | None) -> None:
        """Count a stream of somebody, or raise :class:`Unavailable` if they, or all together, have enough."""
        try:
            self._places.take(self._names(owner))
        except Full as full:
            if full.name == _ALL:
                raise Unavailable(
                    f"{full.most} streams are open already; close some, or raise ALARMCAST_STREAM_LIMIT."
                ) from None
            raise TooMany(
                f"You have {full.most} streams open already. Close some, or raise ALARMCAST_STREAMS_PER_USER.",
                wait=_WAIT_FOR_A_PLACE,
            ) from None

    def give_place_back(self, owner: str | None) -> None:
        """Count a stream no more."""
        self._places.give_back(self._names(owner))

    def _names(self, owner: str | None) -> dict[str, int]:
        own = {} if owner is None else {f"user {owner}": self._most_of_one}
        return own | {_ALL: self._most_listeners}

    def subscribe(self, wish: Filter, wake: Callable[[], None]) -> Subscription:
        """Return a place to listen from, or raise :class:`Unavailable` if there is none."""
        if self.closed:
            raise Unavailable("The service stops; listen again when it has started.")
        if wish.relayed:
            self.take_place(wish.owner)
        with self._lock:
            new = Subscription(self, wish, wake, self._most_waiting)
            self._subscriptions = (*self._subscriptions, new)
            self.has_subscribers = True
        return new

    def unsubscribe(self, subscription: Subscription) -> None:
        """Let a listener go."""
        with self._lock:
            if subscription not in self._subscriptions:
                return
            self._subscriptions = tuple(one for one in self._subscriptions if one is not subscription)
            self.has_subscribers = bool(self._subscriptions)
        if subscription.wish.relayed:
            self.give_place_back(subscription.wish.owner)

    def publish(self, machine: MachineId, encoded: bytes) -> None:
        """Tell a machine's new forecast."""
        if self.has_subscribers:
            for one in self._subscriptions:
                if StreamKind.FORECAST in one.wish.kinds and one.wish.wants(machine):
                    one.put_forecast(machine, encoded)

    def publish_alarms(self, rows: Iterable[EventRow], machines: Iterable[Machine]) -> None:
        """Tell alarms of these machines that are now committed, those whose time is believed."""
        listening = [one for one in self._subscriptions if StreamKind.ALARM in one.wish.kinds]
        if not listening:
            return
        names = {machine.row_id: machine.id for machine in machines}
        alarms: dict[MachineId, list[AlarmEvent]] = {}
        for row in rows:
            if row.flag == IN_TIME:
                machine = names[row.machine]
                alarms.setdefault(machine, []).append(AlarmEvent(machine, row.at_us, row.code))
        for one in listening:
            wanted = [alarm for machine, some in alarms.items() if one.wish.wants(machine) for alarm in some]
            if wanted:
                one.put_alarms(wanted)

    def publish_remote(self, alarms: Sequence[AlarmEvent], *, missed: int = 0) -> None:
        """Tell alarms that another process has committed, and how many more there were."""
        for one in self._subscriptions:
            if one.wish.relayed and StreamKind.ALARM in one.wish.kinds:
                wanted = [alarm for alarm in alarms if one.wish.wants(alarm.machine)]
                if wanted or missed:
                    one.put_alarms(wanted, missed=missed)

    def close(self) -> None:
        """End every stream at once, and let nobody else in: a server that stops must not wait for readers."""
        with self._lock:
            self.closed = True
            left = self._subscriptions
        for one in left:
            one.wake()
        for end in self.when_closed:
            end()
