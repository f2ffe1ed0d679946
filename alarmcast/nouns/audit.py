"""The book of changes: who did what, when, from where and why."""

from alarmcast.call import Ask
from alarmcast.endpoint import Noun, S, operation, pages
from wire.rest.audit import AuditPage


class Audit(Noun[S]):
    """``client.audit``."""

    @operation("GET /v1/audit", AuditPage)
    def page(self, *, who: str | None = None, limit: int = 100, cursor: int | None = None) -> Ask:
        """Return changes, newest first, one page of them."""
        return Ask(params={"limit": limit, "cursor": cursor, "who": who})

    all = pages(page, lambda page: page.entries)
