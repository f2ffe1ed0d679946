"""Maintenance windows: times without notifications for a machine or a site."""

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
        """Return one page of past, current and scheduled windows, newest first."""
        filters = {"site": site, "machine": machine, "active": active}
        return RequestSpec(params={"limit": limit, "cursor": cursor, **filters})

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
        """Suppress notifications of a machine or a whole site from ``since`` (default now) until a plant time."""
        body = MaintenanceCreate(site=site, machine=machine, start=since, until=until, reason=reason, by=by)
        return RequestSpec(body=body)

    @operation("DELETE /v1/maintenance/{number}", MaintenanceView)
    def cancel(self, number: int, *, reason: str | None = None) -> RequestSpec:
        """Cancel a window that has not ended, started or not."""
        return RequestSpec(at={"number": number}, params={"reason": reason})
