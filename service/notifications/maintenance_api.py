"""Maintenance windows: times in which nothing is told of a machine or a site."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request

from service.http.pagination import ActiveOnly, CursorQuery, Limit, Number, paginate
from service.http.problems import responses
from service.http.request import actor, author
from service.notifications.suppression import MaintenanceWindow, SuppressionQuery
from wire.identity import ID_PATTERN
from wire.rest.suppression import MaintenanceCreate, MaintenancePage, MaintenanceView
from wire.rest.texts import PrintableText

if TYPE_CHECKING:
    from service.app.api_services import AppServices


def router(parts: "AppServices") -> APIRouter:
    """Return the routes of maintenance windows."""
    routes = APIRouter(prefix="/v1/maintenance", tags=["notices"])

    @routes.get("", responses=responses(422))
    def list_maintenance(
        *,
        site: Annotated[str | None, Query(pattern=ID_PATTERN, description="Only of this site.")] = None,
        machine: Annotated[
            str | None, Query(pattern=ID_PATTERN, description="Only those that concern this machine of the site.")
        ] = None,
        limit: Limit = 100,
        cursor: CursorQuery = None,
        active: ActiveOnly = False,
    ) -> MaintenancePage:
        """Maintenance windows past, present and planned, newest first."""
        query = SuppressionQuery(limit + 1, cursor, site, machine, parts.clock.now() if active else None)
        shown, following = paginate(parts.hush.windows.page(query), limit, lambda one: one.id)
        now = parts.clock.now()
        return MaintenancePage(windows=[_view(one, now) for one in shown], next=following)

    @routes.post("", status_code=201, responses=responses(404, 422))
    def plan_maintenance(wish: MaintenanceCreate) -> MaintenanceView:
        """Tell nothing of a machine or a site for a time, in plant time; open notices end when it begins."""
        now = parts.clock.now()
        by = author(wish.by)
        window = MaintenanceWindow(0, wish.site, wish.machine, wish.start or now, wish.until, by, wish.reason)
        return _view(parts.hush.schedule_maintenance(window), parts.clock.now())

    @routes.delete("/{number}", responses=responses(404, 409, 422))
    def end_maintenance(
        number: Number,
        request: Request,
        reason: Annotated[
            PrintableText | None, Query(max_length=1000, description="Kept in the book of changes.")
        ] = None,
    ) -> MaintenanceView:
        """End a window before its time, begun or not; 409 if it is over."""
        ended = parts.hush.end_maintenance(number, who=actor(request), reason=reason)
        return _view(ended, parts.clock.now())

    return routes


def _view(window: MaintenanceWindow, now: datetime) -> MaintenanceView:
    return MaintenanceView(
        id=window.id,
        site=window.site,
        machine=window.machine,
        start=window.start,
        until=window.until,
        cancelled_at=window.cancelled_at,
        active=window.start <= now < window.end,
        actor=window.actor,
        reason=window.reason,
    )
