"""Events of OPC UA conditions as readings (OPC 10000-9)."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from asyncua import ua

from edge_agent.sources.edges import Described
from edge_agent.sources.monitor import Reading

_REFRESH_START = ua.NodeId(ua.ObjectIds.RefreshStartEventType)
_REFRESH_END = ua.NodeId(ua.ObjectIds.RefreshEndEventType)
_OVERFLOW = {ua.NodeId(ua.ObjectIds.EventQueueOverflowEventType)}


def _field(kind: int, *path: str) -> ua.SimpleAttributeOperand:
    operand = ua.SimpleAttributeOperand()
    operand.TypeDefinitionId = ua.NodeId(kind)
    operand.BrowsePath = [ua.QualifiedName(name, 0) for name in path]
    operand.AttributeId = ua.AttributeIds.Value if path else ua.AttributeIds.NodeId
    return operand


def _filter() -> ua.EventFilter:
    """Return a filter without a where clause: TwinCAT and Codesys accept no other."""
    base = [
        _field(ua.ObjectIds.BaseEventType, name)
        for name in ("EventId", "EventType", "SourceName", "Time", "Message", "Severity")
    ]
    condition = [_field(ua.ObjectIds.ConditionType, name) for name in ("ConditionName", "BranchId", "Retain")]
    alarm = [
        _field(ua.ObjectIds.AlarmConditionType, "ActiveState", "Id"),
        _field(ua.ObjectIds.AlarmConditionType, "ActiveState", "TransitionTime"),
        _field(ua.ObjectIds.AcknowledgeableConditionType, "AckedState", "Id"),
    ]
    return ua.EventFilter(SelectClauses=[*base, *condition, *alarm, _field(ua.ObjectIds.ConditionType)])


EVENT_FILTER = _filter()


class ConditionReader:
    """Turns condition events into readings, one signal per condition."""

    def __init__(self) -> None:
        self._last_event: dict[str, bytes] = {}
        self._active_since: dict[str, datetime] = {}
        self._unacknowledged: set[str] = set()
        self._refreshed: set[str] | None = None  # conditions sent since the refresh began

    def start(self) -> None:
        """Prepare for a new connection."""
        self._refreshed = None

    def read(self, event: Any, moment: Callable[[datetime | None], datetime]) -> list[Reading]:
        """Return the readings of an event; the end of a refresh clears what it did not contain."""
        if event.EventType == _REFRESH_START:
            self._refreshed = set()
            return []
        if event.EventType == _REFRESH_END:
            kept, self._refreshed = frozenset(self._refreshed or ()), None
            return [Reading("", at=moment(event.Time), keep=kept)]
        if event.EventType in _OVERFLOW:
            return [Reading("", lost="The server lost events: its queue was full. Shorten publish_ms.")]
        return self._condition(event, moment)

    def _condition(self, event: Any, moment: Callable[[datetime | None], datetime]) -> list[Reading]:
        properties = vars(event)
        condition, active = event.NodeId, properties.get("ActiveState/Id")
        if condition is None or active is None or not _is_null(event.BranchId):
            return []  # another event, a condition without a state, or an earlier state that waits for an ack
        signal = condition.to_string()
        if self._refreshed is not None:
            self._refreshed.add(signal)
        if self._last_event.get(signal) == event.EventId:
            return []
        self._last_event[signal] = event.EventId
        at, since = moment(event.Time), properties.get("ActiveState/TransitionTime")
        acknowledged = self._acknowledged(signal, event, at)
        if not active:
            return [*acknowledged, Reading(signal, at=at)]
        described = Described(_text(event.Message), str(event.Severity or ""))
        raised = Reading(signal, {_name(event, signal): described}, moment(since) if since else at)
        known = self._active_since.get(signal)
        if since is not None:
            self._active_since[signal] = since
        if known is not None and since is not None and since > known:
            return [Reading(signal, at=raised.at), raised]  # it was cleared and raised again meanwhile
        return [raised, *acknowledged]

    def _acknowledged(self, signal: str, event: Any, at: datetime) -> list[Reading]:
        """Return a reading if the condition was unacknowledged before this event and is not now."""
        state = vars(event).get("AckedState/Id")
        if state is False:
            self._unacknowledged.add(signal)
        elif state and signal in self._unacknowledged:
            self._unacknowledged.discard(signal)
            return [Reading(signal, at=at, acknowledged=_name(event, signal))]
        return []


def _name(event: Any, signal: str) -> str:
    return ".".join(part for part in (event.SourceName, event.ConditionName) if part) or signal


def _text(message: Any) -> str:
    return str(getattr(message, "Text", message) or "")


def _is_null(node: Any) -> bool:
    return node is None or (isinstance(node, ua.NodeId) and node.is_null())
