"""Notices: which likely alarms were news, who knows, and how they were told."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query

from service.http.pagination import Limit, LongCursorQuery, paginate
from service.http.problems import responses
from service.notifications.models import NotificationQuery
from service.notifications.notification_list import NotificationRow
from service.notifications.webhook import WebhookDelivery, in_words
from service.notifications.webhook_service import payload
from wire.identity import ID_PATTERN
from wire.rest.notifications import AcknowledgementSummary, DeliveryView, NotificationPage, NotificationView

if TYPE_CHECKING:
    from service.app.api_services import AppServices


def router(parts: "AppServices") -> APIRouter:
    """Return the route of notices."""
    routes = APIRouter(prefix="/v1/notices", tags=["notices"])

    @routes.get("", responses=responses(422))
    def list_notices(
        *,
        site: Annotated[str | None, Query(pattern=ID_PATTERN, description="Only of this site.")] = None,
        machine: Annotated[str | None, Query(pattern=ID_PATTERN, description="Only of machines so named.")] = None,
        is_open: Annotated[
            bool | None, Query(alias="open", description="Only those that stand, or only those that do not.")
        ] = None,
        limit: Limit = 100,
        cursor: LongCursorQuery = None,
    ) -> NotificationPage:
        """Notices with their acknowledgement and deliveries, newest first, a page at a time."""
        found = parts.notices.page(NotificationQuery(limit + 1, cursor, site, machine, is_open))
        shown, following = paginate(found, limit, lambda one: one.notice.id)
        return NotificationPage(notifications=[_view(one) for one in shown], next=following)

    return routes


def _view(told: NotificationRow) -> NotificationView:
    notice, known = told.notice, told.known
    return NotificationView(
        **payload(notice).model_dump(),
        open=notice.is_open,
        closed_at=notice.closed_at,
        ended=notice.ended,
        acknowledged=AcknowledgementSummary(at=known.at, actor=known.actor, note=known.note) if known else None,
        deliveries=[_delivery(one) for one in told.deliveries],
    )


def _delivery(one: WebhookDelivery) -> DeliveryView:
    return DeliveryView(
        webhook=one.webhook,
        key=str(one.key),
        state=one.state,
        attempts=one.attempts,
        next_try=one.next_try,
        status=one.status,
        answer=None if one.answer is None else in_words(one.status, one.answer),
        delivered_at=one.delivered_at,
        given_up_at=one.given_up_at,
    )
