"""The state of one edge node: births, aliases, sequence numbers and deaths."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from edge_agent.sources.sparkplug_payload import metric_value

_SEQUENCE = 256


class MetricChange(NamedTuple):
    """A metric's value, with its data type and its time in milliseconds since 1970."""

    device: str
    name: str
    value: bool | int | float | str | None
    datatype: int
    at_ms: int


class Offline(NamedTuple):
    """A device that went offline; without a name it is the whole node."""

    device: str | None


class NodeMessage(NamedTuple):
    """A message of the node: its kind (NBIRTH, DDATA, …), its device and its payload."""

    kind: str
    device: str
    payload: Any


class EdgeNode:
    """Follows the messages of one edge node in the order of their numbers.

    ``needs_rebirth`` is set where a birth is missing, or a message is missing for longer than ``reorder``
    seconds; ``lost`` is set where changes may be missing.
    """

    def __init__(self, reorder: float) -> None:
        self._reorder = reorder
        self._aliases: dict[tuple[str, int], tuple[str, int]] = {}  # name and data type by device and alias
        self._types: dict[tuple[str, str], int] = {}
        self._birth_number: int | None = None
        self._next: int | None = None  # the expected seq; None before a birth
        self._early: dict[int, NodeMessage] = {}
        self._early_since = 0.0
        self._born: set[str] = set()
        self.needs_rebirth, self.lost = True, False

    def take(self, message: NodeMessage, now: float) -> Iterator[MetricChange | Offline]:
        """Yield the changes of a message, and of later ones that have waited for it."""
        if message.kind == "NDEATH":
            if _birth_number(message.payload) == self._birth_number:
                self._forget()
                yield Offline(None)
            return
        if message.kind == "NBIRTH":
            self._forget()
            self._birth_number = _birth_number(message.payload)
            self._next = int(message.payload.seq)
            self.needs_rebirth = False
        if self._next is None:
            self.needs_rebirth = True
            return
        if message.payload.seq != self._next:
            if not self._early:
                self._early_since = now
            self._early[int(message.payload.seq)] = message
            return
        waiting: NodeMessage | None = message
        while waiting is not None:
            self._next = (self._next + 1) % _SEQUENCE
            yield from self._changes(waiting)
            waiting = self._early.pop(self._next, None)
        self._early_since = now

    def check(self, now: float) -> None:
        """Ask for a rebirth if a message has been missing for too long."""
        if self._early and now - self._early_since > self._reorder:
            self._forget()
            self.needs_rebirth = self.lost = True

    def _forget(self) -> None:
        self._aliases.clear()
        self._types.clear()
        self._early.clear()
        self._born.clear()
        self._next = self._birth_number = None

    def _changes(self, message: NodeMessage) -> Iterator[MetricChange | Offline]:
        device = message.device
        if message.kind == "DDEATH":
            self._born.discard(device)
            yield Offline(device)
            return
        is_birth = message.kind in ("NBIRTH", "DBIRTH")
        if is_birth:
            self._born.add(device)
        elif device not in self._born:
            self.needs_rebirth = True
            return
        for metric in message.payload.metrics:
            if is_birth:
                self._types[device, metric.name] = metric.datatype
                if metric.HasField("alias"):
                    self._aliases[device, metric.alias] = (metric.name, metric.datatype)
            name, datatype = metric.name, metric.datatype
            if not name:
                name, datatype = self._aliases.get((device, metric.alias), ("", 0))
            datatype = datatype or self._types.get((device, name), 0)
            if not name:
                self.needs_rebirth = True
                continue
            at = metric.timestamp or message.payload.timestamp
            yield MetricChange(device, name, metric_value(metric), datatype, at)


def _birth_number(payload: Any) -> int | None:
    found = [metric_value(metric) for metric in payload.metrics if metric.name == "bdSeq"]
    return int(found[0]) if found and found[0] is not None else None
