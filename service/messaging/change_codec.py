"""JSON bodies of changes, batched to fit the 8,000 bytes that PostgreSQL allows in a notification."""

from collections import deque
from collections.abc import Iterable, Iterator
from threading import Lock
from typing import Any, Final

from service.messaging.bus import (
    AlarmEvent,
    AlarmsRaised,
    ChampionPromoted,
    Change,
    EventsStored,
    HistoryLoaded,
    JobsChanged,
    NotificationsChanged,
    PermissionsChanged,
    ResourceChanged,
    SuppressionChanged,
)
from wire.identity import MachineId

_MACHINES_PER_MESSAGE, _ALARMS_PER_MESSAGE = 60, 40
_MAX_ALARMS = 400  # per batch; the number of the others is sent as missed
_MAX_QUEUED = 1000
_NAMES: Final[dict[type[Change], str]] = {
    EventsStored: "events",
    AlarmsRaised: "alarms",
    HistoryLoaded: "history",
    ChampionPromoted: "champion",
    SuppressionChanged: "suppression",
    PermissionsChanged: "permissions",
    JobsChanged: "jobs",
    NotificationsChanged: "notifications",
    ResourceChanged: "resource",
}
_WITHOUT_FIELDS: Final = {
    _NAMES[kind]: kind()
    for kind in (ChampionPromoted, PermissionsChanged, JobsChanged, NotificationsChanged, ResourceChanged)
}


def to_body(change: Change) -> dict[str, Any]:
    """Return a change as JSON values."""
    body: dict[str, Any] = {"kind": _NAMES[type(change)]}
    match change:
        case EventsStored():
            body |= {"machines": sorted(map(str, change.machines)), "late": sorted(map(str, change.late))}
        case AlarmsRaised():
            alarms = [[str(alarm.machine), alarm.at_us, alarm.code] for alarm in change.alarms]
            body |= {"alarms": alarms, "missed": change.missed}
        case HistoryLoaded():
            body["machine"] = str(change.machine)
        case SuppressionChanged():
            body |= {"site": change.site, "machine": change.machine}
    return body


def from_body(body: dict[str, Any]) -> Change:
    """Return the change that :func:`to_body` has encoded."""
    match body["kind"]:
        case "events":
            return EventsStored(_machine_ids(body["machines"]), _machine_ids(body["late"]))
        case "alarms":
            alarms = (AlarmEvent(MachineId.parse(name), at_us, code) for name, at_us, code in body["alarms"])
            return AlarmsRaised(tuple(alarms), body["missed"])
        case "history":
            return HistoryLoaded(MachineId.parse(body["machine"]))
        case "suppression":
            return SuppressionChanged(body["site"], body["machine"])
        case name:
            return _WITHOUT_FIELDS[name]


class ChangeBatch:
    """Changes that wait to be sent: stored events are merged, alarms bounded; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._machines: set[MachineId] = set()
        self._late: set[MachineId] = set()
        self._alarms: deque[AlarmEvent] = deque(maxlen=_MAX_QUEUED)
        self._missed = 0
        self._others: deque[Change] = deque(maxlen=_MAX_QUEUED)

    def add(self, change: Change) -> None:
        """Add a change; the oldest alarms are dropped and counted where there is no room."""
        with self._lock:
            if isinstance(change, EventsStored):
                self._machines |= change.machines
                self._late |= change.late
            elif isinstance(change, AlarmsRaised):
                room = _MAX_QUEUED - len(self._alarms)
                self._missed += change.missed + max(0, len(change.alarms) - room)
                self._alarms.extend(change.alarms)
            elif change not in self._others:
                self._others.append(change)

    def take(self) -> list[Change]:
        """Return what waits, in changes that are small enough for a message each, and empty the batch."""
        with self._lock:
            machines, self._machines = self._machines, set()
            late, self._late = self._late, set()
            others, alarms, missed = list(self._others), list(self._alarms), self._missed
            self._others.clear()
            self._alarms.clear()
            self._missed = 0
        missed += max(0, len(alarms) - _MAX_ALARMS)
        return [
            *others,
            *(EventsStored(machines=chunk) for chunk in _chunks(machines)),
            *(EventsStored(late=chunk) for chunk in _chunks(late)),
            *(
                AlarmsRaised(tuple(alarms[first : first + _ALARMS_PER_MESSAGE]))
                for first in range(0, min(len(alarms), _MAX_ALARMS), _ALARMS_PER_MESSAGE)
            ),
            *([AlarmsRaised(missed=missed)] if missed else []),
        ]


def _chunks(machines: set[MachineId]) -> Iterator[frozenset[MachineId]]:
    ordered = sorted(machines)
    for first in range(0, len(ordered), _MACHINES_PER_MESSAGE):
        yield frozenset(ordered[first : first + _MACHINES_PER_MESSAGE])


def _machine_ids(names: Iterable[str]) -> frozenset[MachineId]:
    return frozenset(map(MachineId.parse, names))
