"""Quarantine: what was refused and why, one whole, and another chance for it after a fix."""

from base64 import b64encode
from typing import Annotated

from fastapi import APIRouter, Path, Query

from service.auth.audit_store import AuditStore
from service.errors import InputRejected
from service.http.pagination import WORD, LongCursorQuery
from service.http.problems import responses
from service.http.request import principal
from service.ingest.quarantine_replay import QuarantineReplay
from service.machines.models import QuarantinedItem, QuarantineQuery
from service.machines.site_filter import SiteFilteredQuarantine
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
