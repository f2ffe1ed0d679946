"""Manage webhooks: add, test, enable, disable, remove; build the body of a delivery."""

from dataclasses import dataclass
from secrets import token_urlsafe
from uuid import uuid4

from service.machines.catalogue_store import CatalogueStore
from service.machines.models import MachineReader
from service.notifications.models import Notification
from service.notifications.policy import check_policy
from service.notifications.policy_store import PolicyStore
from service.notifications.store import WebhookStore
from service.notifications.suppression import require_site_or_machine
from service.notifications.webhook import DeliveryResult, Webhook, check_url
from service.notifications.webhook_client import WebhookClient
from wire.clock import PlantClock
from wire.enums import Severity
from wire.rest.notifications import NotificationLinks, NotificationPayload, WebhookEventType, WebhookMessage
from wire.rest.policies import NotificationPolicy


@dataclass(frozen=True)
class WebhookService:
    """Administration of webhooks."""

    machines: MachineReader
    webhooks: WebhookStore
    policies: PolicyStore
    catalogue: CatalogueStore
    client: WebhookClient
    clock: PlantClock

    def add(
        self,
        url: str,
        *,
        severity: Severity,
        site: str | None,
        machine: str | None,
        policy: NotificationPolicy | None,
        who: str,
        reason: str | None,
    ) -> Webhook:
        """Store a webhook with a new secret."""
        self._check(policy, severity)
        if site is not None:
            require_site_or_machine(self.machines, site, machine)
        webhook = Webhook(
            id=0,
            url=check_url(url, self.client.allowed),
            secret=f"whsec_{token_urlsafe(32)}",
            severity=severity,
            site=site,
            machine=machine,
            enabled=True,
            created_at=self.clock.now(),
            policy=policy,
        )
        return self.webhooks.add(webhook, who=who, reason=reason)

    def switch(self, webhook_id: int, *, enabled: bool, who: str, reason: str) -> Webhook:
        """Enable or disable a webhook; deliveries wait up to a day for a disabled one."""
        webhook = self.webhooks.get(webhook_id)
        return self.webhooks.switch(webhook, enabled=enabled, at=self.clock.now(), who=who, reason=reason)

    def set_policy(self, webhook_id: int, policy: NotificationPolicy | None, *, who: str, reason: str) -> Webhook:
        """Give a webhook its own policy, or with None that of the sites again."""
        webhook = self.webhooks.get(webhook_id)
        self._check(policy, webhook.severity)
        self.policies.save_own(webhook, policy, at=self.clock.now(), who=who, reason=reason)
        return self.webhooks.get(webhook_id)

    def _check(self, policy: NotificationPolicy | None, severity: Severity) -> None:
        if policy is not None:
            check_policy(policy, self.catalogue.entries().values(), severity)

    def remove(self, webhook_id: int, *, who: str, reason: str) -> None:
        """Delete a webhook and its deliveries."""
        self.webhooks.remove(self.webhooks.get(webhook_id), at=self.clock.now(), who=who, reason=reason)

    def test(self, webhook_id: int) -> DeliveryResult:
        """Send a signed test message once and return the result, also if the webhook is disabled."""
        webhook = self.webhooks.get(webhook_id)
        body = WebhookMessage(event=WebhookEventType.TEST, notification=None).model_dump_json().encode()
        return self.client.send(webhook.url, webhook.secret, str(uuid4()), body)


def payload(notification: Notification, public_url: str) -> NotificationPayload:
    """Return a notification as webhooks receive it; links start with ``public_url``."""
    page = f"{public_url}/machines/{notification.machine}"
    return NotificationPayload(
        id=notification.id,
        site=notification.machine.site,
        machine=notification.machine.machine,
        code=notification.code,
        text=notification.text,
        severity=notification.severity,
        as_of=notification.as_of,
        horizon_end=notification.horizon_end,
        probability=notification.probability,
        threshold=notification.threshold,
        model_version=notification.model_version,
        opened_at=notification.opened_at,
        webhook=notification.webhook or None,
        similar_right=notification.similar_right,
        similar_total=notification.similar_total,
        record=_record(notification.similar_right, notification.similar_total),
        links=NotificationLinks(machine=page, why=f"{page}?code={notification.code}"),
        response=notification.response,
    )


def _record(right: int, total: int) -> str:
    if not total:
        return "No such notification was evaluated in the last 30 days."
    return f"{right} of {total} such notifications were right in the last 30 days."


def delivery_body(notification: Notification, public_url: str) -> bytes:
    """Return the body of a delivery; only the response may differ between attempts, if the catalogue does."""
    message = WebhookMessage(event=WebhookEventType.OPENED, notification=payload(notification, public_url))
    return message.model_dump_json().encode()
