"""From states to edges: which alarms were raised and which cleared since the last reading."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from edge_agent.sources import Context, SourceBatch
from wire.events import TransitionKind
from wire.log_rows import RowRejected


class Described(NamedTuple):
    """How the source describes an alarm."""

    text: str = ""
    severity: str = ""


UNDESCRIBED = Described()


class Edge(NamedTuple):
    """The change of one alarm; without a kind it was raised."""

    at: datetime
    name: str
    kind: TransitionKind | None

    @property
    def raised(self) -> bool:
        """Whether the alarm was raised."""
        return self.kind is None


class _Change(NamedTuple):
    at: datetime
    since: float


class EdgeDetector:
    """Compares the active alarms of each signal with those known before.

    A change counts once it has lasted ``debounce`` seconds, with the time at which it was first read. Signals of
    ``stops`` contain the reason why the machine stands.
    """

    def __init__(
        self,
        debounce: float = 0.0,
        known: Mapping[str, Collection[str]] | None = None,
        stops: Collection[str] = (),
    ) -> None:
        self._debounce, self._stops = debounce, stops
        self._known = {signal: set(names) for signal, names in (known or {}).items()}
        self._pending: dict[tuple[str, str], _Change] = {}

    def update(self, signal: str, active: Collection[str], at: datetime, now: float) -> list[Edge]:
        """Compare a reading of a signal at ``at``; ``now`` is the monotonic time in seconds."""
        known, present = self._known.setdefault(signal, set()), set(active)
        for key in [key for key in self._pending if key[0] == signal]:
            if (key[1] in present) == (key[1] in known):
                del self._pending[key]
        for name in sorted(present ^ known):
            self._pending.setdefault((signal, name), _Change(at, now))
        return self.settle(now)

    def settle(self, now: float) -> list[Edge]:
        """Return the changes that have lasted long enough, clears first."""
        edges: list[Edge] = []
        for (signal, name), change in list(self._pending.items()):
            if now - change.since >= self._debounce:
                del self._pending[signal, name]
                raised = name not in self._known[signal]
                (self._known[signal].add if raised else self._known[signal].discard)(name)
                edges.append(Edge(change.at, name, self._kind(signal, begins=raised)))
        return sorted(edges, key=lambda edge: (edge.at, edge.raised))

    def _kind(self, signal: str, *, begins: bool) -> TransitionKind | None:
        if signal in self._stops:
            return TransitionKind.STOPPED if begins else TransitionKind.RESUMED
        return None if begins else TransitionKind.CLEARED

    def signals(self) -> dict[str, list[str]]:
        """Return the known active alarms by signal, to be stored in a bookmark."""
        return {signal: sorted(names) for signal, names in self._known.items() if names}


def number_edges(edges: Iterable[Edge], context: Context, texts: Mapping[str, Described]) -> SourceBatch:
    """Give edges their numbers; those without one are skipped. The batch has no bookmark yet."""
    numbered = SourceBatch([], "")
    for edge in edges:
        try:
            alarm = context.alarm(edge.name, edge.at, *texts.get(edge.name, UNDESCRIBED))
        except RowRejected as error:
            numbered.skipped.append(str(error))
            continue
        if alarm is not None:
            numbered.add(alarm, edge.kind)
    return numbered
