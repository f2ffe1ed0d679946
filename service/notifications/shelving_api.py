"""Shelves: alarms without notifications for a while, left out of figures; forecasts and learning go on."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request

from service.http.pagination import ActiveOnly, CursorQuery, Limit, Number, paginate
from service.http.problems import responses
from service.http.request import MachineName, Site, actor, author
from service.machines.catalogue import CatalogueEntry, unknown_code
from service.notifications.suppression import ShelvedAlarm, SuppressionQuery
from wire.identity import MachineId
from wire.rest.suppression import ShelvedAlarmPage, ShelvedAlarmView, ShelveRequest
from wire.rest.texts import PrintableText

if TYPE_CHECKING:
    from service.app.api_services import AppServices


def router(parts: "AppServices") -> APIRouter:
    """Return the routes of shelves."""
    routes = APIRouter(prefix="/v1", tags=["notices"])

    def page(query: SuppressionQuery, limit: int) -> ShelvedAlarmPage:
        shown, following = paginate(parts.hush.shelves.page(query), limit, lambda one: one.id)
        now, entries = parts.clock.now(), parts.catalogue.entries()
        return ShelvedAlarmPage(shelves=[_view(one, now, entries) for one in shown], next=following)

    @routes.get("/shelves", responses=responses(422))
    def list_all_shelves(
        limit: Limit = 100,
        cursor: CursorQuery = None,
        active: ActiveOnly = True,  # noqa: FBT002
    ) -> ShelvedAlarmPage:
        """What is shelved anywhere, newest first; with `active=false` what was, too."""
        holding_at = parts.clock.now() if active else None
        return page(SuppressionQuery(limit + 1, cursor, active_at=holding_at), limit)

    @routes.get("/machines/{site}/{machine}/shelves", responses=responses(404, 422))
    def list_shelves(
        site: Site,
        machine: MachineName,
        limit: Limit = 100,
        cursor: CursorQuery = None,
        active: ActiveOnly = True,  # noqa: FBT002
    ) -> ShelvedAlarmPage:
        """What is shelved on a machine, newest first; with `active=false` what was, too."""
        parts.machines.get(MachineId(site, machine))
        holding_at = parts.clock.now() if active else None
        return page(SuppressionQuery(limit + 1, cursor, site, machine, holding_at), limit)

    @routes.post("/machines/{site}/{machine}/shelves", status_code=201, responses=responses(404, 410, 422))
    def shelve_alarm(site: Site, machine: MachineName, wish: ShelveRequest) -> ShelvedAlarmView:
        """Keep an alarm of a machine quiet until an end in plant time; a shelf it has already gives way.

        Its open notice is closed, and it counts as shelved in figures. Forecasts and what they are made of do
        not change; when the shelf ends, an alarm that is still likely is news again.
        """
        until = wish.until or timedelta(minutes=wish.minutes or 0)
        by = author(wish.by)
        made = parts.hush.shelve(MachineId(site, machine), wish.code, until=until, who=by, reason=wish.reason)
        return _view(made, parts.clock.now(), parts.catalogue.entries())

    @routes.delete("/machines/{site}/{machine}/shelves/{number}", responses=responses(404, 409, 422))
    def lift_shelf(
        site: Site,
        machine: MachineName,
        number: Number,
        request: Request,
        reason: Annotated[
            PrintableText | None, Query(max_length=1000, description="Kept in the book of changes.")
        ] = None,
    ) -> ShelvedAlarmView:
        """End a shelf before its time; 409 if it has ended."""
        lifted = parts.hush.unshelve(MachineId(site, machine), number, who=actor(request), reason=reason)
        return _view(lifted, parts.clock.now(), parts.catalogue.entries())

    return routes


def _view(shelf: ShelvedAlarm, now: datetime, entries: dict[int, CatalogueEntry]) -> ShelvedAlarmView:
    return ShelvedAlarmView(
        id=shelf.id,
        site=shelf.machine.site,
        machine=shelf.machine.machine,
        code=shelf.code,
        text=(entries.get(shelf.code) or unknown_code(shelf.code)).text,
        start=shelf.start,
        until=shelf.until,
        unshelved_at=shelf.unshelved_at,
        active=shelf.is_active(now),
        actor=shelf.actor,
        reason=shelf.reason,
    )
