"""Maintenance windows: times in which nothing is told of a machine or a site."""

from datetime import datetime

from alarmcast.endpoint import Resource, TransportT, operation, pages
from alarmcast.requests import RequestSpec
from wire.rest.suppression import MaintenanceCreate, MaintenancePage, MaintenanceView


class Maintenance(Resource[TransportT]):
    """``client.maintenance``."""

    @operation("GET /v1/maintenance", MaintenancePage)
    def page(
        self,
        *,
        site: str | None = None,
        machine: str | None = None,
        limit: int = 100,
        cursor: int | None = None,
        active: bool = False,
    ) -> RequestSpec:
        """Return windows past, present and planned, newest first, one page of them."""
        narrowed = {"site": site, "machine": machine, "active": active}
        return RequestSpec(params={"limit": limit, "cursor": cursor, **narrowed})

    windows = pages(page, lambda page: page.windows)

    @operation("POST /v1/maintenance", MaintenanceView)
    def create(
        self,
        site: str,
        *,
        until: datetime,
        reason: str,
        machine: str | None = None,
        since: datetime | None = None,
        by: str | None = None,
    ) -> RequestSpec:
        """Tell nothing of a machine, or of a whole site, from now or ``since`` on, until an end in plant time."""
        wish = MaintenanceCreate(site=site, machine=machine, start=since, until=until, reason=reason, by=by)
        return RequestSpec(body=wish)

    @operation("DELETE /v1/maintenance/{number}", MaintenanceView)
    def cancel(self, number: int, *, reason: str | None = None) -> RequestSpec:
        """End a window before its time, begun or not."""
        return RequestSpec(at={"number": number}, params={"reason": reason})
