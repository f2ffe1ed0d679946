"""Gaps: events an agent had to drop, as exactly as it knew."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query

from service.http.problems import responses
from service.http.request import MachineName, Site
from service.machines.history import GapRecord
from wire.identity import MachineId
from wire.rest.gaps import GapPage, GapView
from wire.timestamps import EARLIEST, LATEST, UtcDatetime

if TYPE_CHECKING:
    from service.app.api_services import AppServices


def router(parts: "AppServices") -> APIRouter:
    """Return the routes of gaps."""
    routes = APIRouter(prefix="/v1/machines", tags=["machines"])

    @routes.get("/{site}/{machine}/gaps", responses=responses(404, 422))
    def list_gaps(
        site: Site,
        machine: MachineName,
        limit: Annotated[int, Query(ge=1, le=1000, description="How many at the most.")] = 100,
        since: Annotated[UtcDatetime | None, Query(description="Gaps that end at this moment or later.")] = None,
        until: Annotated[UtcDatetime | None, Query(description="Gaps that begin before this moment.")] = None,
    ) -> GapPage:
        """Which of the machine's events were dropped because its spool was full, the newest ``limit``."""
        known = parts.machines.get(MachineId(site, machine))
        found = parts.log.newest_gaps(known, since or EARLIEST, until or LATEST, limit)
        views = [gap_view(gap, dropped) for gap, dropped in found]
        return GapPage(gaps=views, dropped=sum(view.dropped for view in views))

    return routes


def gap_view(gap: GapRecord, dropped: int) -> GapView:
    """Return a gap as the API shows it."""
    return GapView(
        first_at=gap.first_at,
        last_at=gap.last_at,
        first_seq=gap.first_seq,
        last_seq=gap.last_seq,
        dropped=dropped,
        reason=gap.reason,
    )
