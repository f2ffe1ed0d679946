"""Notices: which likely alarms were news, who knows, and how they were told."""

from alarmcast.endpoint import Resource, TransportT, operation, pages
from alarmcast.requests import RequestSpec
from wire.rest.notifications import NotificationPage


class Notices(Resource[TransportT]):
    """``client.notices``."""

    @operation("GET /v1/notices", NotificationPage)
    def page(
        self,
        *,
        site: str | None = None,
        machine: str | None = None,
        is_open: bool | None = None,
        limit: int = 100,
        cursor: int | None = None,
    ) -> RequestSpec:
        """Return notices with their acknowledgement and deliveries, newest first, one page of them."""
        narrowed = {"site": site, "machine": machine, "open": is_open}
        return RequestSpec(params={"limit": limit, "cursor": cursor, **narrowed})

    all = pages(page, lambda page: page.notifications)
