"""Gaps: events an agent had to drop, as exactly as it knew."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from service.web.parts import MachineName, Parts, Site
from service.web.problems import responses
from wire.identity import MachineId
from wire.moment import EARLIEST, LATEST, Moment


class GapView(BaseModel):
    """A run of events that never left the machine."""

    first_at: Moment
    last_at: Moment
    first_seq: int
    last_seq: int
    dropped: int = Field(description="How many of these numbers are really missing: some may have arrived before.")
    reason: str


class GapPage(BaseModel):
    """Gaps in time order; ``dropped`` counts all of them."""

    gaps: list[GapView]
    dropped: int


def router(parts: Parts) -> APIRouter:
    """Return the routes of gaps."""
    routes = APIRouter(prefix="/v1/machines", tags=["machines"])

    @routes.get("/{site}/{machine}/gaps", responses=responses(404, 422))
    def gaps(
        site: Site,
        machine: MachineName,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        since: Annotated[Moment | None, Query(description="Gaps that end at this moment or later.")] = None,
        until: Annotated[Moment | None, Query(description="Gaps that begin before this moment.")] = None,
    ) -> GapPage:
        """Which of the machine's events were dropped because its spool was full, the newest ``limit``."""
        known = parts.machines.get(MachineId(site, machine))
        found = parts.log.exact_gaps(known, since or EARLIEST, until or LATEST)[-limit:]
        views = [
            GapView(
                first_at=gap.first_at,
                last_at=gap.last_at,
                first_seq=gap.first_seq,
                last_seq=gap.last_seq,
                dropped=dropped,
                reason=gap.reason,
            )
            for gap, dropped in found
        ]
        return GapPage(gaps=views, dropped=sum(view.dropped for view in views))

    return routes
