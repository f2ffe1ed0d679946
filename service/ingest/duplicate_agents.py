"""Two agents in one machine's name: known by their spools and processes, and kept from contradicting."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from wire.identity import MachineId

_REMEMBER_FOR = timedelta(days=1)
_MAX_MACHINES = 100  # agents of one machine; a client that invents instances must not fill the memory


@dataclass
class _Speakers:
    """Who speaks for a machine now, and who did before; a speaker is an agent's process, or else its spool."""

    present: str
    epoch: UUID
    before: dict[str, datetime] = field(default_factory=dict)
    parted: frozenset[str] = frozenset()
    pair: tuple[str, str] | None = None
    pair_at: datetime | None = None

    def found(self, other: str, at: datetime) -> None:
        self.pair, self.pair_at = (self.present, other), at


@dataclass
class DuplicateAgentDetector:
    """A new speaker is a restart, once; one that comes back, or parts without a greeting, is a second agent."""

    _speakers: dict[MachineId, _Speakers] = field(default_factory=dict)

    def accept(
        self,
        machine: MachineId,
        epoch: UUID,
        *,
        online: bool,
        at: datetime,
        instance: str | None = None,
        gave_way: bool = False,
    ) -> bool:
        """Take in a state; False for the farewell of an agent whose place another has taken."""
        known = self._speakers.get(machine)
        if known is None:
            self._speakers[machine] = _Speakers(instance or str(epoch), epoch)
            return True
        # A state without an instance is of an older agent, or written by the service for one it has locked out.
        speaker = instance or (known.present if epoch == known.epoch else str(epoch))
        if speaker == known.present:
            known.epoch = epoch
            known.parted = known.parted - {speaker} if online else known.parted | {speaker}
            return True
        if not online:
            # It says so, or parts without a greeting: an agent that found its place taken and gave way.
            if gave_way or speaker not in known.before or speaker in known.parted:
                known.found(speaker, at)
            else:
                known.parted = known.parted | {speaker}
            return False
        last_spoke = known.before.get(speaker)
        if last_spoke is not None and at - last_spoke < _REMEMBER_FOR:
            known.found(speaker, at)
        known.before = {other: when for other, when in known.before.items() if at - when < _REMEMBER_FOR}
        known.before.pop(known.present, None)
        known.before[known.present] = at  # last, as the newest
        if len(known.before) > _MAX_MACHINES:
            del known.before[next(iter(known.before))]
        known.parted = (known.parted & known.before.keys()) - {speaker}
        known.present, known.epoch = speaker, epoch
        return True

    def pair(self, machine: MachineId, at: datetime) -> tuple[str, str] | None:
        """Return the two agents of a machine if they were found out at this very moment."""
        known = self._speakers.get(machine)
        return known.pair if known is not None and known.pair_at == at else None

    def recent(self, now: datetime) -> list[MachineId]:
        """Return the machines in whose name two agents have spoken within a day."""
        return sorted(
            machine
            for machine, known in list(self._speakers.items())
            if known.pair_at is not None and now - known.pair_at < _REMEMBER_FOR
        )
