"""What an admin does with webhooks: make, test, switch, remove; and what is put into a delivery."""

from collections.abc import Callable
from dataclasses import dataclass
from secrets import token_urlsafe
from uuid import UUID, uuid4

from service.errors import NotFound
from service.machines.models import MachineReader
from service.notifications.models import Notification
from service.notifications.webhook import DeliveryResult, Webhook, WebhookRegistry, checked_url
from service.notifications.webhook_addresses import Receivers
from service.notifications.webhook_client import WebhookClient
from wire.clock import PlantClock
from wire.enums import Severity
from wire.identity import MachineId
from wire.rest.notifications import NotificationPayload, WebhookEventType, WebhookMessage


def new_secret() -> str:
    """Return a secret that nobody can guess."""
    return f"whsec_{token_urlsafe(32)}"


@dataclass(frozen=True)
class WebhookService:
    """The flow and its ports."""

    machines: MachineReader
    webhooks: WebhookRegistry
    post: WebhookClient
    clock: PlantClock
    receivers: Receivers
    secret: Callable[[], str] = new_secret
    key: Callable[[], UUID] = uuid4

    def add(
        self, url: str, *, severity: Severity, site: str | None, machine: str | None, who: str, reason: str | None
    ) -> Webhook:
        """Keep an address that is told from now on; its secret is made here."""
        if site is not None and machine is not None:
            self.machines.get(MachineId(site, machine))
        elif site is not None and not any(one.id.site == site for one in self.machines.all()):
            raise NotFound(f"No machine is enrolled at {site}; name a site that has one.")
        made = Webhook(
            id=0,
            url=checked_url(url, self.receivers),
            secret=self.secret(),
            severity=severity,
            site=site,
            machine=machine,
            enabled=True,
            created_at=self.clock.now(),
        )
        return self.webhooks.add(made, who=who, reason=reason)

    def all(self) -> list[Webhook]:
        """Return every webhook, oldest first."""
        return self.webhooks.all()

    def get(self, number: int) -> Webhook:
        """Return one webhook."""
        return self.webhooks.get(number)

    def switch(self, number: int, *, enabled: bool, who: str, reason: str) -> Webhook:
        """Let a webhook be told, or not; what waits for one that is switched off waits on, for a day."""
        webhook = self.webhooks.get(number)
        return self.webhooks.switch(webhook, enabled=enabled, at=self.clock.now(), who=who, reason=reason)

    def remove(self, number: int, *, who: str, reason: str) -> None:
        """Forget a webhook and its deliveries."""
        self.webhooks.remove(self.webhooks.get(number), at=self.clock.now(), who=who, reason=reason)

    def test(self, number: int) -> DeliveryResult:
        """Send a signed test, once, and return what the receiver said; works for one that is switched off too."""
        webhook = self.webhooks.get(number)
        body = WebhookMessage(event=WebhookEventType.TEST, notification=None).model_dump_json().encode()
        return self.post.send(webhook.url, webhook.secret, str(self.key()), body)


def payload(notice: Notification) -> NotificationPayload:
    """Return a notice as it is told."""
    return NotificationPayload(
        id=notice.id,
        site=notice.machine.site,
        machine=notice.machine.machine,
        code=notice.code,
        text=notice.text,
        severity=notice.severity,
        as_of=notice.as_of,
        horizon_end=notice.horizon_end,
        probability=notice.probability,
        threshold=notice.threshold,
        model_version=notice.model_version,
        opened_at=notice.opened_at,
    )


def body(notice: Notification) -> bytes:
    """Return the body of a delivery, the same at every attempt."""
    return WebhookMessage(event=WebhookEventType.OPENED, notification=payload(notice)).model_dump_json().encode()
