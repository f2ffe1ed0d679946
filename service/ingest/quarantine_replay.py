"""Quarantine to store: what was refused is judged again, after a fix of ours or of theirs."""

from dataclasses import dataclass
from typing import NamedTuple

from service.errors import Conflict
from service.ingest.service import IncomingMessage, IngestBatch, TimePolicy, commit
from service.machines.events import EventWriter
from service.machines.models import QuarantinedItem, QuarantineQuery, QuarantineReader
from service.machines.store import MachineCache
from service.messaging.bus import ChangeBus, EventsStored
from wire.clock import PlantClock
from wire.topics import Channel, topic


class ReplayResult(NamedTuple):
    """What became of an item, or of many."""

    stored: int
    known: int
    refused: int


@dataclass(frozen=True)
class QuarantineReplay:
    """Judges as ingest does, with the very same code; what is taken leaves the quarantine in the same commit."""

    quarantine: QuarantineReader
    recorder: EventWriter
    registry: MachineCache
    clock: PlantClock
    policy: TimePolicy
    bus: ChangeBus

    def replay(self, number: int, corrected: bytes | None = None) -> ReplayResult:
        """Replay one item, with a corrected body if one is given; raises if it is refused again."""
        item = self.quarantine.get(number)
        replayed, why = self._judge(item, corrected)
        if why:
            raise Conflict(f"Item {number} is still refused: {why}. Correct it, or leave it where it is.")
        return replayed

    def replay_all(self, reason: str, limit: int) -> ReplayResult:
        """Replay up to ``limit`` items of one reason, oldest of the newest first; what is refused again stays."""
        stored = known = refused = 0
        for item in reversed(self.quarantine.page(QuarantineQuery(limit, reason=reason))):
            replayed, why = self._judge(item, None)
            stored, known, refused = stored + replayed.stored, known + replayed.known, refused + bool(why)
        return ReplayResult(stored, known, refused)

    def _judge(self, item: QuarantinedItem, corrected: bytes | None) -> tuple[ReplayResult, str | None]:
        # What is known to be a machine's needs no topic: a conflict was found after the message was taken apart.
        name = topic(item.machine, Channel.EVENTS) if item.machine else item.topic
        intake = IngestBatch(self.clock.now(), self.policy, self.registry)
        intake.add(IncomingMessage(name, item.body if corrected is None else corrected))
        recording = intake.write
        if not (recording.events or recording.gaps):
            return ReplayResult(0, 0, 1), _why(intake)
        recording.seen_machines.clear()  # what was refused long ago is no sign of life
        recording.released_quarantine.add(item.id)
        receipt = commit(intake, recorder=self.recorder)
        self.bus.publish(EventsStored(frozenset(receipt.affected)))
        recorded = receipt.recorded
        if recorded.absent:
            return ReplayResult(0, 0, 1), "its machine is not registered"
        if recorded.refused:
            return ReplayResult(0, 0, 1), "its machine has too many spools"
        if recorded.conflicts and not (recorded.stored or recorded.duplicates):
            return ReplayResult(0, 0, 1), "its number belongs to another event"
        return ReplayResult(recorded.stored, recorded.duplicates, recorded.conflicts), None


def _why(intake: IngestBatch) -> str:
    if intake.write.unregistered:
        return "its machine is not registered"
    return next((f"{one.reason}, {one.detail}" for one in intake.write.quarantined), "it holds no event")
