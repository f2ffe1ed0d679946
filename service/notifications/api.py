"""Routes of notifications and webhooks."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from service.answers.store import AnswerStore
from service.auth.audit_store import AuditStore
from service.http.problems import responses
from service.http.request import Limit, LongCursorQuery, Number, actor, paginate
from service.notifications.models import NotificationQuery
from service.notifications.policy import policy_text
from service.notifications.store import DeliveryStore, NotificationStore
from service.notifications.suppression_store import AcknowledgementStore
from service.notifications.webhook import Webhook, WebhookDelivery, status_text
from service.notifications.webhook_service import WebhookService, payload
from wire.identity import ID_PATTERN
from wire.rest.notifications import AcknowledgementSummary, DeliveryView, NotificationPage, NotificationView
from wire.rest.texts import PrintableText
from wire.rest.webhooks import NewWebhook, WebhookAnswer, WebhookCreate, WebhookList, WebhookSwitch, WebhookView


def router(
    *,
    notifications: NotificationStore,
    acknowledgements: AcknowledgementStore,
    deliveries: DeliveryStore,
    answers: AnswerStore,
    webhooks: WebhookService,
    audit: AuditStore,
    public_url: str,
) -> APIRouter:
    """Return the routes of notifications and webhooks."""
    routes = APIRouter(prefix="/v1", tags=["notifications"])

    @routes.get("/notifications", responses=responses(422))
    def list_notifications(
        *,
        site: Annotated[str | None, Query(pattern=ID_PATTERN, description="Only of this site.")] = None,
        machine: Annotated[str | None, Query(pattern=ID_PATTERN, description="Only of machines so named.")] = None,
        is_open: Annotated[
            bool | None, Query(alias="open", description="Only open notifications, or only closed ones.")
        ] = None,
        limit: Limit = 100,
        cursor: LongCursorQuery = None,
    ) -> NotificationPage:
        """List notifications with their acknowledgement and deliveries, newest first."""
        rows = notifications.page(NotificationQuery(limit + 1, cursor, site, machine, is_open))
        page, following = paginate(rows, limit, lambda notification: notification.id)
        ids = [notification.id for notification in page]
        first_acks, sent = acknowledgements.for_notifications(ids), deliveries.for_notifications(ids)
        answered = answers.for_notifications(ids)
        views = []
        for notification in page:
            ack = first_acks.get(notification.id)
            summary = AcknowledgementSummary(at=ack.at, actor=ack.actor, note=ack.note) if ack else None
            views.append(
                NotificationView(
                    **payload(notification, public_url).model_dump(),
                    open=notification.is_open,
                    held_back=notification.held_back,
                    closed_at=notification.closed_at,
                    ended=notification.ended,
                    acknowledged=summary,
                    answer=answered.get(notification.id),
                    deliveries=[_delivery(delivery) for delivery in sent.get(notification.id, [])],
                )
            )
        return NotificationPage(notifications=views, next=following)

    @routes.get("/webhooks")
    def list_webhooks() -> WebhookList:
        """List all webhooks, oldest first, without secrets."""
        return WebhookList(webhooks=[webhook_view(webhook) for webhook in webhooks.webhooks.all()])

    @routes.post("/webhooks", status_code=201, responses=responses(404, 422))
    def add_webhook(body: WebhookCreate, request: Request) -> NewWebhook:
        """Send every new notification to a URL; the secret in the response is shown only once.

        Each delivery is a POST with the headers `Alarmcast-Delivery` (the same at every attempt: drop duplicates)
        and `Alarmcast-Signature: t=<unix time>,v1=<hex>`, the HMAC-SHA256 under the secret of the time, a dot
        and the bytes of the body. Anything but a 2xx within five seconds is retried for a day; 410 disables it.
        """
        webhook = webhooks.add(
            body.url,
            severity=body.severity,
            site=body.site,
            machine=body.machine,
            policy=body.policy,
            who=actor(request),
            reason=body.reason,
        )
        return NewWebhook(**webhook_view(webhook).model_dump(), secret=webhook.secret)

    @routes.get("/webhooks/{number}", responses=responses(404, 422))
    def get_webhook(number: Number) -> WebhookView:
        """Return one webhook, without its secret."""
        return webhook_view(webhooks.webhooks.get(number))

    @routes.patch("/webhooks/{number}", responses=responses(404, 422))
    def switch_webhook(number: Number, body: WebhookSwitch, request: Request) -> WebhookView:
        """Enable or disable a webhook."""
        return webhook_view(webhooks.switch(number, enabled=body.enabled, who=actor(request), reason=body.reason))

    @routes.delete("/webhooks/{number}", status_code=204, responses=responses(404, 422))
    def remove_webhook(
        number: Number,
        request: Request,
        reason: Annotated[PrintableText, Query(max_length=1000, description="Recorded in the audit log.")],
    ) -> None:
        """Delete a webhook, its secret and its deliveries."""
        webhooks.remove(number, who=actor(request), reason=reason)

    @routes.post("/webhooks/{number}/test", responses=responses(404, 422))
    def test_webhook(number: Number, request: Request) -> WebhookAnswer:
        """Send a signed test message to a webhook once and return the receiver's status."""
        subject = f"webhook {webhooks.webhooks.get(number).id}"
        audit.write(at=webhooks.clock.now(), who=actor(request), action="test", subject=subject, reason=None)
        result = webhooks.test(number)
        return WebhookAnswer(
            delivered=result.ok, status=result.status, answer=result.text, seconds=round(result.seconds, 3)
        )

    return routes


def _delivery(delivery: WebhookDelivery) -> DeliveryView:
    return DeliveryView(
        webhook=delivery.webhook,
        key=str(delivery.key),
        state=delivery.state,
        attempts=delivery.attempts,
        next_try=delivery.next_try,
        status=delivery.status,
        answer=None if delivery.answer is None else status_text(delivery.status, delivery.answer),
        delivered_at=delivery.delivered_at,
        given_up_at=delivery.given_up_at,
    )


def webhook_view(webhook: Webhook) -> WebhookView:
    """Return a webhook without its secret."""
    return WebhookView(
        id=webhook.id,
        url=webhook.url,
        severity=webhook.severity,
        site=webhook.site,
        machine=webhook.machine,
        enabled=webhook.enabled,
        error=webhook.error,
        created_at=webhook.created_at,
        policy=webhook.policy,
        policy_text=policy_text(webhook.policy) if webhook.policy else None,
    )
