"""The change bus: typed events, published and subscribed in process, bridged to other processes.

Features publish what they have committed and subscribe to what their caches depend on. With a database that
several processes share, :mod:`service.messaging.pg_bridge` forwards every :data:`Change` to the others.
"""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeVar

from service.messaging.process import Lease
from wire.identity import MachineId


@dataclass(eq=False, slots=True)
class AlarmEvent:
    """An alarm that was just committed; ``encoded`` caches its JSON for all streams."""

    machine: MachineId
    at_us: int
    code: int
    encoded: bytes | None = None


@dataclass(frozen=True)
class EventsStored:
    """Events or agent states were committed; ``late`` machines got events of an earlier time."""

    machines: frozenset[MachineId] = frozenset()
    late: frozenset[MachineId] = frozenset()


@dataclass(frozen=True)
class AlarmsRaised:
    """Alarms with a valid time were committed; ``missed`` more were lost on the way here."""

    alarms: tuple[AlarmEvent, ...] = ()
    missed: int = 0


@dataclass(frozen=True)
class HistoryLoaded:
    """The history of a machine was imported."""

    machine: MachineId


@dataclass(frozen=True)
class ChampionPromoted:
    """Another model version is the champion."""


@dataclass(frozen=True)
class SuppressionChanged:
    """Shelving or maintenance of a machine, or of a whole site, has changed."""

    site: str
    machine: str | None


@dataclass(frozen=True)
class PermissionsChanged:
    """The role, sites, password or session of a user or API key has changed."""


@dataclass(frozen=True)
class JobsChanged:
    """The state or progress of a job has changed."""


@dataclass(frozen=True)
class NotificationsChanged:
    """A notification was opened or closed, or a webhook delivery was attempted."""


@dataclass(frozen=True)
class ResourceChanged:
    """A request over REST has written something."""


Change = (
    EventsStored
    | AlarmsRaised
    | HistoryLoaded
    | ChampionPromoted
    | SuppressionChanged
    | PermissionsChanged
    | JobsChanged
    | NotificationsChanged
    | ResourceChanged
)


@dataclass(frozen=True)
class ChangesMissed:
    """Changes of other processes may have been missed: every cache must be invalidated. Local only."""


@dataclass(frozen=True)
class LeaseChanged:
    """This process has acquired or lost a lease. Local only."""

    lease: Lease
    held: bool


@dataclass(frozen=True)
class StreamsClosed:
    """The service stops: every server-sent-event stream must end. Local only."""


E = TypeVar("E")
Handler = Callable[[Any], None]


class ChangeBus:
    """Calls handlers in the publisher's thread, in the order of their subscription: they must not block."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._handlers: dict[type[object], tuple[Handler, ...]] = {}
        self._forward: Callable[[Change], None] | None = None

    def subscribe(self, kind: type[E], handler: Callable[[E], None]) -> Callable[[], None]:
        """Call ``handler`` with every event of a type; return the function that unsubscribes."""
        with self._lock:
            self._handlers[kind] = (*self._handlers.get(kind, ()), handler)

        def unsubscribe() -> None:
            with self._lock:
                self._handlers[kind] = tuple(other for other in self._handlers[kind] if other is not handler)

        return unsubscribe

    def forward_to(self, forward: Callable[[Change], None]) -> None:
        """Hand every published :data:`Change` to a bridge as well."""
        self._forward = forward

    def has_subscribers(self, kind: type[object]) -> bool:
        """Return whether events of a type go anywhere, so that a publisher can avoid building them."""
        return bool(self._forward or self._handlers.get(kind))

    def publish(self, event: object) -> None:
        """Deliver an event in this process and, if it is a :data:`Change`, forward it to the others."""
        try:
            self.deliver(event)
        finally:
            if self._forward and isinstance(event, Change):
                self._forward(event)

    def deliver(self, event: object) -> None:
        """Call every handler of this process; the first error is raised after all have run."""
        first_error: Exception | None = None
        for handler in self._handlers.get(type(event), ()):
            try:
                handler(event)
            except Exception as error:  # noqa: BLE001 - raised below
                first_error = first_error or error
        if first_error is not None:
            raise first_error
