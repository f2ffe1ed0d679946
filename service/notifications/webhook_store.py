"""Webhooks: who is told of notices over HTTP."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from service.auth.audit_store import record
from service.database.engine import Database
from service.database.tables import deliveries, webhooks
from service.errors import NotFound
from service.notifications.webhook import Webhook
from wire.enums import Severity
from wire.timestamps import from_us, to_us


@dataclass(frozen=True)
class WebhookStore:
    """Made and let go by admins; switched off by a receiver that says it is gone."""

    database: Database

    def add(self, webhook: Webhook, *, who: str, reason: str | None) -> Webhook:
        """Keep a new webhook, whose number is given here."""
        row = {
            "url": webhook.url,
            "secret": webhook.secret,
            "severity": webhook.severity.value,
            "site": webhook.site,
            "machine": webhook.machine,
            "enabled": webhook.enabled,
            "created_us": to_us(webhook.created_at),
        }
        with self.database.write() as connection:
            added = connection.execute(insert(webhooks).values(**row))
            number = int(added.inserted_primary_key[0])  # type: ignore[index]  # an insert of one row has one
            subject = _subject(number)
            record(connection, at=webhook.created_at, who=who, action="add", subject=subject, reason=reason)
        return self.get(number)

    def all(self) -> list[Webhook]:
        """Return every webhook, oldest first."""
        with self.database.read() as connection:
            return all_webhooks(connection)

    def get(self, number: int) -> Webhook:
        """Return a webhook, or raise :class:`NotFound`."""
        with self.database.read() as connection:
            row = connection.execute(select(webhooks).where(webhooks.c.id == number)).one_or_none()
        if row is None:
            raise NotFound(f"There is no webhook {number}.")
        return webhook_of(row)

    def switch(self, webhook: Webhook, *, enabled: bool, at: datetime, who: str, reason: str | None) -> Webhook:
        """Let a webhook be told or not; what still waited for one that is switched off will wait on."""
        with self.database.write() as connection:
            values = {"enabled": enabled, "error": None if enabled else reason}
            connection.execute(update(webhooks).where(webhooks.c.id == webhook.id).values(**values))
            action = "enable" if enabled else "disable"
            record(connection, at=at, who=who, action=action, subject=_subject(webhook.id), reason=reason)
        return self.get(webhook.id)

    def remove(self, webhook: Webhook, *, at: datetime, who: str, reason: str | None) -> None:
        """Forget a webhook and its deliveries; the notices stay."""
        with self.database.write() as connection:
            connection.execute(delete(deliveries).where(deliveries.c.webhook_id == webhook.id))
            connection.execute(delete(webhooks).where(webhooks.c.id == webhook.id))
            subject = _subject(webhook.id)
            record(connection, at=at, who=who, action="remove", subject=subject, reason=reason)


def all_webhooks(connection: Connection) -> list[Webhook]:
    """Return every webhook inside a transaction."""
    return [webhook_of(row) for row in connection.execute(select(webhooks).order_by(webhooks.c.id))]


def webhook_of(row: Row[Any]) -> Webhook:
    """Return a webhook from its row."""
    return Webhook(
        id=row.id,
        url=row.url,
        secret=row.secret,
        severity=Severity(row.severity),
        site=row.site,
        machine=row.machine,
        enabled=row.enabled,
        created_at=from_us(row.created_us),
        error=row.error,
    )


def _subject(number: int) -> str:
    return f"webhook {number}"  # its address may hold a token
