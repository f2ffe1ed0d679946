"""Quarantine: what was refused and why, and another chance for it after a fix."""

from alarmcast.endpoint import Resource, TransportT, operation, pages
from alarmcast.requests import MachineName, RequestSpec
from wire.rest.quarantine import ItemPage, QuarantineItemDetail, ReasonView, ReplayBody, ReplayView


class Quarantine(Resource[TransportT]):
    """``client.quarantine``."""

    @operation("GET /v1/quarantine", ItemPage)
    def page(
        self,
        *,
        limit: int = 100,
        cursor: int | None = None,
        reason: str | None = None,
        machine: MachineName | None = None,
    ) -> RequestSpec:
        """Return what was refused, newest first, one page of it."""
        whose = None if machine is None else str(machine)
        return RequestSpec(params={"limit": limit, "cursor": cursor, "reason": reason, "machine": whose})

    items = pages(page, lambda page: page.items)

    @operation("GET /v1/quarantine/reasons", list[ReasonView])
    def reasons(self) -> RequestSpec:
        """Return how much was refused for which reason, most first."""
        return RequestSpec()

    @operation("GET /v1/quarantine/{number}", QuarantineItemDetail)
    def get(self, number: int) -> RequestSpec:
        """Return one item with its body."""
        return RequestSpec(at={"number": number})

    @operation("POST /v1/quarantine/{number}/replay", ReplayView)
    def replay(self, number: int, *, body: str | None = None) -> RequestSpec:
        """Judge one item again, with a corrected body if one is given."""
        return RequestSpec(at={"number": number}, body=None if body is None else ReplayBody(body=body))

    @operation("POST /v1/quarantine/replay", ReplayView)
    def replay_all(self, *, reason: str, limit: int = 1000) -> RequestSpec:
        """Judge again what was refused for a reason; what is refused again stays."""
        return RequestSpec(params={"reason": reason, "limit": limit})
