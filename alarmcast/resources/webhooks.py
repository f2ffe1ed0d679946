"""Webhooks: who is told of notices over HTTP."""

from alarmcast.endpoint import Resource, TransportT, operation
from alarmcast.requests import RequestSpec
from wire.enums import Severity
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
        reason: str | None = None,
    ) -> RequestSpec:
        """Tell an address of every notice from now on; the answer's secret is shown this once."""
        wish = WebhookCreate(url=url, severity=severity, site=site, machine=machine, reason=reason)
        return RequestSpec(body=wish)

    @operation("PATCH /v1/webhooks/{number}", WebhookView)
    def switch(self, number: int, *, enabled: bool, reason: str) -> RequestSpec:
        """Switch a webhook on or off."""
        return RequestSpec(at={"number": number}, body=WebhookSwitch(enabled=enabled, reason=reason))

    @operation("POST /v1/webhooks/{number}/test", WebhookAnswer)
    def test(self, number: int) -> RequestSpec:
        """Send a signed test to a webhook now and return what its receiver said."""
        return RequestSpec(at={"number": number})

    @operation("DELETE /v1/webhooks/{number}", type(None))
    def remove(self, number: int, *, reason: str) -> RequestSpec:
        """Forget a webhook, its secret and its deliveries."""
        return RequestSpec(at={"number": number}, params={"reason": reason})
