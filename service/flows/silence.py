"""Which machines have fallen silent though their rhythm says they should have spoken; their agent may be well."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from service.core.machine import Machine
from service.core.silence import LOOK_BACK, WorkingRhythm, rhythm
from service.flows.ports import EventLog, Machines
from wire.identity import MachineId

_RENEW_AFTER = timedelta(days=1)
_AT_ONCE = 1000  # machines


@dataclass(frozen=True)
class Silence:
    """A machine, since when it is silent, and how many hours it should have spoken in."""

    machine: MachineId
    since: datetime
    missed_hours: float
    usual_hours: float


@dataclass
class SilenceWatch:
    """Looks at every machine; a rhythm is learned anew once a plant day."""

    machines: Machines
    log: EventLog
    _rhythms: dict[int, tuple[datetime, WorkingRhythm | None]] = field(default_factory=dict)
    found: list[Silence] = field(default_factory=list)

    def look(self, now: datetime) -> list[Silence]:
        """Return the machines that are silent now, those that have missed most first."""
        machines = self.machines.all()
        parts = (machines[first : first + _AT_ONCE] for first in range(0, len(machines), _AT_ONCE))
        silent = [one for part in parts for one in self._look(part, now)]
        self.found = sorted(silent, key=lambda one: -one.missed_hours / one.usual_hours)
        return self.found

    def _look(self, machines: list[Machine], now: datetime) -> Iterator[Silence]:
        """Ask for the last alarms of many machines at once; their windows are empty, and so cost nothing."""
        for machine, known in zip(machines, self.log.evidence(machines, now, now), strict=True):
            silence = self._judge(machine, known.last_at, now)
            if silence is not None:
                yield silence

    def _judge(self, machine: Machine, last: datetime | None, now: datetime) -> Silence | None:
        if last is None or last >= now:
            return None
        known = self._rhythm(machine, now)
        if known is None:
            return None
        missed = known.working_hours(last, now)
        return Silence(machine.id, last, missed, known.patience) if missed > known.patience else None

    def _rhythm(self, machine: Machine, now: datetime) -> WorkingRhythm | None:
        kept = self._rhythms.get(machine.row)
        if kept and timedelta(0) <= now - kept[0] < _RENEW_AFTER:
            return kept[1]
        learned = rhythm(self.log.series(machine, now - LOOK_BACK, now), now)
        if learned is None and kept and kept[1]:
            learned = kept[1]  # a machine that is silent for weeks has not lost its rhythm
        self._rhythms[machine.row] = (now, learned)
        return learned
