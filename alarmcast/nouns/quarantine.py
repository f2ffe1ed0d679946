"""Quarantine: what was refused and why, and another chance for it after a fix."""

from alarmcast.call import Ask, MachineName
from alarmcast.endpoint import Noun, S, operation, pages
from wire.rest.quarantine import Correction, ItemPage, ReasonView, ReplayView, WholeItem


class Quarantine(Noun[S]):
    """``client.quarantine``."""

    @operation("GET /v1/quarantine", ItemPage)
    def page(
        self,
        *,
        limit: int = 100,
        cursor: int | None = None,
        reason: str | None = None,
        machine: MachineName | None = None,
    ) -> Ask:
        """Return what was refused, newest first, one page of it."""
        whose = None if machine is None else str(machine)
        return Ask(params={"limit": limit, "cursor": cursor, "reason": reason, "machine": whose})

    items = pages(page, lambda page: page.items)

    @operation("GET /v1/quarantine/reasons", list[ReasonView])
    def reasons(self) -> Ask:
        """Return how much was refused for which reason, most first."""
        return Ask()

    @operation("GET /v1/quarantine/{number}", WholeItem)
    def get(self, number: int) -> Ask:
        """Return one item with its body."""
        return Ask(at={"number": number})

    @operation("POST /v1/quarantine/{number}/replay", ReplayView)
    def replay(self, number: int, *, body: str | None = None) -> Ask:
        """Judge one item again, with a corrected body if one is given."""
        return Ask(at={"number": number}, body=None if body is None else Correction(body=body))

    @operation("POST /v1/quarantine/replay", ReplayView)
    def replay_all(self, *, reason: str, limit: int = 1000) -> Ask:
        """Judge again what was refused for a reason; what is refused again stays."""
        return Ask(params={"reason": reason, "limit": limit})
