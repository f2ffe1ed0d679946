"""Notifications: likely alarms that users were notified of, acknowledgements and webhook deliveries."""

from alarmcast.endpoint import Resource, TransportT, operation, pages
from alarmcast.requests import RequestSpec
from wire.rest.notifications import NotificationPage


class Notifications(Resource[TransportT]):
    """``client.notifications``."""

    @operation("GET /v1/notifications", NotificationPage)
    def page(
        self,
        *,
        site: str | None = None,
        machine: str | None = None,
        is_open: bool | None = None,
        limit: int = 100,
        cursor: int | None = None,
    ) -> RequestSpec:
        """Return one page of notifications with acknowledgement and deliveries, newest first."""
        filters = {"site": site, "machine": machine, "open": is_open}
        return RequestSpec(params={"limit": limit, "cursor": cursor, **filters})

    all = pages(page, lambda page: page.notifications)
