"""Notices: which likely alarms were news, who knows, and how they were told."""

from alarmcast.call import Ask
from alarmcast.endpoint import Noun, S, operation, pages
from wire.rest.notices import NoticePage


class Notices(Noun[S]):
    """``client.notices``."""

    @operation("GET /v1/notices", NoticePage)
    def page(
        self,
        *,
        site: str | None = None,
        machine: str | None = None,
        is_open: bool | None = None,
        limit: int = 100,
        cursor: int | None = None,
    ) -> Ask:
        """Return notices with their acknowledgement and deliveries, newest first, one page of them."""
        narrowed = {"site": site, "machine": machine, "open": is_open}
        return Ask(params={"limit": limit, "cursor": cursor, **narrowed})

    all = pages(page, lambda page: page.notices)
