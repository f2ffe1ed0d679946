"""Webhooks: HTTP receivers of notifications."""

from typing import Any

from alarmcast.endpoint import Resource, TransportT, operation
from alarmcast.requests import RequestSpec
from wire.enums import Severity
from wire.rest.policies import NotificationPolicy, WebhookPolicyChange
from wire.rest.webhooks import NewWebhook, WebhookAnswer, WebhookCreate, WebhookList, WebhookSwitch, WebhookView


class Webhooks(Resource[TransportT]):
    """``client.webhooks``."""

    @operation("GET /v1/webhooks", WebhookList)
    def list(self) -> RequestSpec:
        """Return every webhook, oldest first, without its secret."""
        return RequestSpec()

    @operation("GET /v1/webhooks/{number}", WebhookView)
    def get(self, number: int) -> RequestSpec:
        """Return one webhook, without its secret."""
        return RequestSpec(at={"number": number})

    @operation("POST /v1/webhooks", NewWebhook)
    def add(
        self,
        url: str,
        *,
        severity: Severity = Severity.HIGH,
        site: str | None = None,
        machine: str | None = None,
        policy: NotificationPolicy | None = None,
        reason: str | None = None,
    ) -> RequestSpec:
        """Send new notifications to a URL; the secret is returned only once."""
        body = WebhookCreate(url=url, severity=severity, site=site, machine=machine, policy=policy, reason=reason)
        return RequestSpec(body=body)

    @operation("PATCH /v1/webhooks/{number}", WebhookView)
    def switch(self, number: int, *, enabled: bool, reason: str) -> RequestSpec:
        """Enable or disable a webhook."""
        return RequestSpec(at={"number": number}, body=WebhookSwitch(enabled=enabled, reason=reason))

    @operation("PUT /v1/webhooks/{number}/policy", WebhookView)
    def set_policy(
        self, number: int, policy: NotificationPolicy | dict[str, Any] | None, *, reason: str
    ) -> RequestSpec:
        """Give a webhook its own notification policy, or with None that of each machine's site again."""
        body = WebhookPolicyChange.model_validate({"policy": policy, "reason": reason})
        return RequestSpec(at={"number": number}, body=body)

    @operation("POST /v1/webhooks/{number}/test", WebhookAnswer)
    def test(self, number: int) -> RequestSpec:
        """Send a signed test message and return the response of the receiver."""
        return RequestSpec(at={"number": number})

    @operation("DELETE /v1/webhooks/{number}", type(None))
    def remove(self, number: int, *, reason: str) -> RequestSpec:
        """Delete a webhook, its secret and its deliveries."""
        return RequestSpec(at={"number": number}, params={"reason": reason})
