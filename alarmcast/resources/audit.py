"""The book of changes: who did what, when, from where and why."""

from alarmcast.endpoint import Resource, TransportT, operation, pages
from alarmcast.requests import RequestSpec
from wire.rest.audit import AuditPage


class Audit(Resource[TransportT]):
    """``client.audit``."""

    @operation("GET /v1/audit", AuditPage)
    def page(self, *, who: str | None = None, limit: int = 100, cursor: int | None = None) -> RequestSpec:
        """Return changes, newest first, one page of them."""
        return RequestSpec(params={"limit": limit, "cursor": cursor, "who": who})

    all = pages(page, lambda page: page.entries)
