"""Routes of the quarantine, and the replay of quarantined messages after a fix."""

from base64 import b64encode
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Path, Query

from service.auth.audit_store import AuditStore
from service.errors import Conflict, InputRejected
from service.http.problems import responses
from service.http.request import WORD, LongCursorQuery, principal
from service.ingest.service import IncomingMessage, IngestBatch, TimePolicy, commit
from service.machines.events import EventWriter
from service.machines.models import QuarantinedItem, QuarantineQuery, QuarantineReader
from service.machines.site_filter import SiteFilteredQuarantine
from service.machines.store import MachineCache
from service.messaging.bus import ChangeBus, EventsStored
from wire.clock import PlantClock
from wire.identity import MachineId
from wire.rest.quarantine import (
    ItemPage,
    QuarantineItemDetail,
    QuarantineItemView,
    ReasonView,
    ReplayBody,
    ReplayView,
)
from wire.rest.texts import PRINTABLE
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


Number = Annotated[int, Path(ge=1, le=WORD, description="The item's number.")]


def router(quarantine: SiteFilteredQuarantine, replay: QuarantineReplay, audit: AuditStore) -> APIRouter:
    """Return the routes of the quarantine."""

    def record(action: str, subject: str, reason: str) -> None:
        now, who = replay.clock.now(), principal().name
        audit.write(at=now, who=who, action=action, subject=subject, reason=reason)

    routes = APIRouter(prefix="/v1/quarantine", tags=["quarantine"])

    @routes.get("", responses=responses(422))
    def list_quarantined(
        limit: Annotated[int, Query(ge=1, le=1000, description="How many on a page.")] = 100,
        cursor: LongCursorQuery = None,
        reason: Annotated[
            str | None, Query(max_length=200, pattern=PRINTABLE, description="Refused for this reason only.")
        ] = None,
        machine: Annotated[str | None, Query(max_length=200, description="Of this site/machine only.")] = None,
    ) -> ItemPage:
        """What was refused, newest first, a page at a time."""
        whose = _machine(machine) if machine else None
        found = quarantine.page(QuarantineQuery(limit + 1, cursor, reason, whose))
        shown = found[:limit]
        return ItemPage(items=[_view(item) for item in shown], next=shown[-1].id if len(found) > limit else None)

    @routes.get("/reasons")
    def count_quarantined() -> list[ReasonView]:
        """How much was refused for which reason, most first."""
        return [ReasonView(**one._asdict()) for one in quarantine.reasons()]

    @routes.post("/replay", responses=responses(422))
    def replay_quarantined(
        reason: Annotated[
            str, Query(max_length=200, pattern=PRINTABLE, description="Replay what was refused for this reason.")
        ],
        limit: Annotated[int, Query(ge=1, le=10_000, description="How many at the most.")] = 1000,
    ) -> ReplayView:
        """Judge again what was refused for a reason; what is refused again stays."""
        record("replay", f"up to {limit} quarantined items", reason)
        return ReplayView(**replay.replay_all(reason, limit)._asdict())

    @routes.get("/{number}", responses=responses(404, 422))
    def get_quarantined_item(number: Number) -> QuarantineItemDetail:
        """One item, whole."""
        item = quarantine.get(number)
        try:
            text = item.body.decode()
        except UnicodeDecodeError:
            text = None
        return QuarantineItemDetail(**_view(item).model_dump(), text=text, base64=b64encode(item.body).decode())

    @routes.post("/{number}/replay", responses=responses(404, 409, 422))
    def replay_quarantined_item(number: Number, correction: ReplayBody | None = None) -> ReplayView:
        """Judge one item again, with a corrected body if one is given; 409 if it is refused again."""
        item = quarantine.get(number)
        record("replay corrected" if correction else "replay", f"quarantined item {number}", item.reason)
        corrected = correction.body.encode(errors="surrogatepass") if correction else None
        return ReplayView(**replay.replay(number, corrected)._asdict())

    return routes


def _view(item: QuarantinedItem) -> QuarantineItemView:
    return QuarantineItemView(
        id=item.id,
        received_at=item.received_at,
        machine=str(item.machine) if item.machine else None,
        topic=item.topic,
        reason=item.reason,
        detail=item.detail,
        size=len(item.body),
        sha256=item.sha256,
    )


def _machine(text: str) -> MachineId:
    try:
        return MachineId.parse(text)
    except ValueError as error:
        raise InputRejected(str(error)) from None
