"""The book of changes: who did what, when, from where and why."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query

from service.auth.audit import AuditQuery, AuditRecord
from service.http.pagination import CursorQuery, Limit, paginate
from service.http.problems import responses
from wire.rest.audit import AuditEntry, AuditPage
from wire.rest.texts import PRINTABLE

if TYPE_CHECKING:
    from service.app.api_services import AppServices


def router(parts: "AppServices") -> APIRouter:
    """Return the route of the book of changes."""
    routes = APIRouter(prefix="/v1/audit", tags=["people"])

    @routes.get("", responses=responses(422))
    def list_changes(
        limit: Limit = 100,
        cursor: CursorQuery = None,
        who: Annotated[
            str | None, Query(max_length=200, pattern=PRINTABLE, description="Only what they did.")
        ] = None,
    ) -> AuditPage:
        """Every change that somebody asked for, newest first, a page at a time; nothing is ever taken out."""
        found = parts.audit.page(AuditQuery(limit + 1, cursor, who))
        shown, following = paginate(found, limit, lambda one: one.id)
        return AuditPage(entries=[_view(one) for one in shown], next=following)

    return routes


def _view(deed: AuditRecord) -> AuditEntry:
    return AuditEntry(
        id=deed.id,
        at=deed.at,
        actor=deed.actor,
        action=deed.action,
        subject=deed.subject,
        reason=deed.reason,
        origin=deed.origin,
    )
