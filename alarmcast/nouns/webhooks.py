"""Webhooks: who is told of notices over HTTP."""

from alarmcast.call import Ask
from alarmcast.endpoint import Noun, S, operation
from wire.rest.webhooks import NewWebhook, WebhookAnswer, WebhookList, WebhookSwitch, WebhookView, WebhookWish
from wire.words import Severity


class Webhooks(Noun[S]):
    """``client.webhooks``."""

    @operation("GET /v1/webhooks", WebhookList)
    def list(self) -> Ask:
        """Return every webhook, oldest first, without its secret."""
        return Ask()

    @operation("GET /v1/webhooks/{number}", WebhookView)
    def get(self, number: int) -> Ask:
        """Return one webhook, without its secret."""
        return Ask(at={"number": number})

    @operation("POST /v1/webhooks", NewWebhook)
    def add(
        self,
        url: str,
        *,
        severity: Severity = Severity.HIGH,
        site: str | None = None,
        machine: str | None = None,
        reason: str | None = None,
    ) -> Ask:
        """Tell an address of every notice from now on; the answer's secret is shown this once."""
        wish = WebhookWish(url=url, severity=severity, site=site, machine=machine, reason=reason)
        return Ask(body=wish)

    @operation("PATCH /v1/webhooks/{number}", WebhookView)
    def switch(self, number: int, *, enabled: bool, reason: str) -> Ask:
        """Switch a webhook on or off."""
        return Ask(at={"number": number}, body=WebhookSwitch(enabled=enabled, reason=reason))

    @operation("POST /v1/webhooks/{number}/test", WebhookAnswer)
    def test(self, number: int) -> Ask:
        """Send a signed test to a webhook now and return what its receiver said."""
        return Ask(at={"number": number})

    @operation("DELETE /v1/webhooks/{number}", type(None))
    def remove(self, number: int, *, reason: str) -> Ask:
        """Forget a webhook, its secret and its deliveries."""
        return Ask(at={"number": number}, params={"reason": reason})
