"""Webhooks: who is told of notices over HTTP."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request

from service.auth.audit_request import audit
from service.http.pagination import Number
from service.http.problems import responses
from service.http.request import actor
from service.notifications.webhook import Webhook
from wire.rest.texts import PrintableText
from wire.rest.webhooks import NewWebhook, WebhookAnswer, WebhookCreate, WebhookList, WebhookSwitch, WebhookView

if TYPE_CHECKING:
    from service.app.api_services import AppServices


def router(parts: "AppServices") -> APIRouter:
    """Return the routes of webhooks."""
    routes = APIRouter(prefix="/v1/webhooks", tags=["notices"])

    @routes.get("")
    def list_webhooks() -> WebhookList:
        """Every webhook, oldest first, without its secret."""
        return WebhookList(webhooks=[_view(one) for one in parts.webhooks.all()])

    @routes.post("", status_code=201, responses=responses(404, 422))
    def add_webhook(wish: WebhookCreate, request: Request) -> NewWebhook:
        """Tell an address of every notice that opens from now on; the secret in the answer is shown this once.

        Each delivery is a POST with the headers `Alarmcast-Delivery` (the same at every attempt: take it once)
        and `Alarmcast-Signature: t=<unix time>,v1=<hex>`, the HMAC-SHA256 under the secret of the time, a dot
        and the body's bytes. Anything but a 2xx within five seconds is tried again for a day; 410 ends it.
        """
        made = parts.webhooks.add(
            wish.url,
            severity=wish.severity,
            site=wish.site,
            machine=wish.machine,
            who=actor(request),
            reason=wish.reason,
        )
        return NewWebhook(**_view(made).model_dump(), secret=made.secret)

    @routes.get("/{number}", responses=responses(404, 422))
    def get_webhook(number: Number) -> WebhookView:
        """One webhook, without its secret."""
        return _view(parts.webhooks.get(number))

    @routes.patch("/{number}", responses=responses(404, 422))
    def switch_webhook(number: Number, change: WebhookSwitch, request: Request) -> WebhookView:
        """Switch a webhook on or off."""
        switched = parts.webhooks.switch(number, enabled=change.enabled, who=actor(request), reason=change.reason)
        return _view(switched)

    @routes.delete("/{number}", status_code=204, responses=responses(404, 422))
    def remove_webhook(
        number: Number,
        request: Request,
        reason: Annotated[PrintableText, Query(max_length=1000, description="Why; kept in the book of changes.")],
    ) -> None:
        """Forget a webhook, its secret and its deliveries."""
        parts.webhooks.remove(number, who=actor(request), reason=reason)

    @routes.post("/{number}/test", responses=responses(404, 422))
    def test_webhook(number: Number) -> WebhookAnswer:
        """Send a signed test to a webhook now, once, and answer with what its receiver said."""
        audit(parts, "test", f"webhook {parts.webhooks.get(number).id}")
        answer = parts.webhooks.test(number)
        return WebhookAnswer(
            delivered=answer.ok,
            status=answer.status,
            answer=answer.text,
            seconds=round(answer.seconds, 3),
        )

    return routes


def _view(webhook: Webhook) -> WebhookView:
    return WebhookView(
        id=webhook.id,
        url=webhook.url,
        severity=webhook.severity,
        site=webhook.site,
        machine=webhook.machine,
        enabled=webhook.enabled,
        error=webhook.error,
        created_at=webhook.created_at,
    )
