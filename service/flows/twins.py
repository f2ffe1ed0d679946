"""Two agents in one machine's name: known by their spools, which take turns, and kept from contradicting."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from wire.identity import MachineId

_REMEMBERS = timedelta(days=1)
_MOST = 100  # spools of one machine: whoever makes up new ones without end must not fill the memory


@dataclass
class _Voices:
    """Whose voice a machine speaks with now, and which it spoke with before."""

    present: UUID
    before: dict[UUID, datetime] = field(default_factory=dict)
    parted: frozenset[UUID] = frozenset()
    twins_at: datetime | None = None


@dataclass
class Twins:
    """A new spool is a new voice, once; one that comes back, or says farewell unheard, is a second agent."""

    _voices: dict[MachineId, _Voices] = field(default_factory=dict)

    def believes(self, machine: MachineId, epoch: UUID, *, online: bool, at: datetime) -> bool:
        """Hear a state; False for the farewell of an agent whose place another has taken."""
        voices = self._voices.get(machine)
        if voices is None:
            self._voices[machine] = _Voices(epoch)
            return True
        if epoch == voices.present:
            voices.parted = voices.parted - {epoch} if online else voices.parted | {epoch}
            return True
        if not online:
            # A farewell without a greeting before it: an agent that found its place taken and gave way.
            if epoch not in voices.before or epoch in voices.parted:
                voices.twins_at = at
            else:
                voices.parted = voices.parted | {epoch}
            return False
        last_spoke = voices.before.get(epoch)
        if last_spoke is not None and at - last_spoke < _REMEMBERS:
            voices.twins_at = at
        voices.before = {other: when for other, when in voices.before.items() if at - when < _REMEMBERS}
        voices.before.pop(voices.present, None)
        voices.before[voices.present] = at  # last, as the newest
        if len(voices.before) > _MOST:
            del voices.before[next(iter(voices.before))]
        voices.parted = (voices.parted & voices.before.keys()) - {epoch}
        voices.present = epoch
        return True

    def seen(self, now: datetime) -> list[MachineId]:
        """Return the machines in whose name two agents have spoken within a day."""
        return sorted(
            machine
            for machine, voices in list(self._voices.items())
            if voices.twins_at is not None and now - voices.twins_at < _REMEMBERS
        )
