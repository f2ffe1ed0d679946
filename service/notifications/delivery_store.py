"""Deliveries: an outbox that survives every restart; each is tried by one courier at a time, until it is over."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, func, select, update

from service.auth.audit_store import record
from service.database.engine import Database
from service.database.tables import deliveries, machines, notifications, webhooks
from service.notifications.store import notification_from_row
from service.notifications.webhook import DeliveryBacklog, DeliveryJob, DeliveryResult, WebhookDelivery
from service.notifications.webhook_store import webhook_of
from wire.timestamps import from_us, to_us


@dataclass(frozen=True)
class DeliveryStore:
    """What is on its way, and what became of it; times are wall time."""

    database: Database

    def due(self, now: datetime, *, limit: int, not_to: Iterable[int] = ()) -> list[WebhookDelivery]:
        """Return the deliveries whose time has come, longest due first, except to some webhooks."""
        query = (
            select(deliveries)
            .join(webhooks)
            .where(
                deliveries.c.next_attempt_us <= to_us(now),
                webhooks.c.enabled,
                deliveries.c.webhook_id.not_in(list(not_to)),
            )
            .order_by(deliveries.c.next_attempt_us, deliveries.c.id)
            .limit(limit)
        )
        with self.database.read() as connection:
            return [_delivery(row) for row in connection.execute(query)]

    def claim(self, delivery: WebhookDelivery, *, now: datetime, lease: timedelta) -> DeliveryJob | None:
        """Count another attempt before it is made, or return None if somebody else was quicker.

        Should this process die on the way, the delivery is due again when the lease has run out.
        """
        until = to_us(now + lease)
        with self.database.write() as connection:
            seen = to_us(delivery.next_try) if delivery.next_try is not None else None
            mine = (deliveries.c.id == delivery.id, deliveries.c.next_attempt_us == seen)
            values = {"attempts": deliveries.c.attempts + 1, "next_attempt_us": until}
            if not connection.execute(update(deliveries).where(*mine).values(**values)).rowcount:
                return None
            hook = connection.execute(select(webhooks).where(webhooks.c.id == delivery.webhook)).one()
            news = connection.execute(
                select(notifications, machines.c.site, machines.c.machine)
                .join_from(notifications, machines)
                .where(notifications.c.id == delivery.notice)
            ).one()
        taken = replace(delivery, attempts=delivery.attempts + 1, next_try=from_us(until))
        return DeliveryJob(taken, webhook_of(hook), notification_from_row(news))

    def complete(
        self, delivery: WebhookDelivery, answer: DeliveryResult, *, now: datetime, again: datetime | None
    ) -> None:
        """Note what a receiver said to the attempt that was taken up, and when to try again, if ever.

        One that was given up meanwhile, or taken up by another, keeps what it has, unless it was delivered.
        """
        values: dict[str, Any] = {"status": answer.status, "response": answer.text}
        values["next_attempt_us"] = to_us(again) if again is not None and not answer.ok else None
        if answer.ok:
            values |= {"delivered_us": to_us(now), "abandoned_us": None}
        elif again is None:
            values["abandoned_us"] = to_us(now)
        with self.database.write() as connection:
            chosen = update(deliveries).where(deliveries.c.id == delivery.id)
            if not answer.ok:
                taken = to_us(delivery.next_try) if delivery.next_try is not None else None
                chosen = chosen.where(deliveries.c.next_attempt_us == taken)
            connection.execute(chosen.values(**values))

    def abandon(self, webhook: int, *, now: datetime, plant_at: datetime, why: str) -> None:
        """End all that waits for a webhook and disable it, because its receiver said that it is gone."""
        with self.database.write() as connection:
            waiting = (deliveries.c.webhook_id == webhook, deliveries.c.next_attempt_us.is_not(None))
            ended = {"next_attempt_us": None, "abandoned_us": to_us(now), "response": why}
            connection.execute(update(deliveries).where(*waiting).values(**ended))
            switched = update(webhooks).where(webhooks.c.id == webhook)
            connection.execute(switched.values(enabled=False, error=why))
            subject = f"webhook {webhook}"
            record(connection, at=plant_at, who="service", action="disable", subject=subject, reason=why)

    def backlog(self) -> DeliveryBacklog:
        """Return how much is still to be delivered to webhooks that are enabled, and since when."""
        query = (
            select(func.count(), func.min(deliveries.c.created_us))
            .join_from(deliveries, webhooks)
            .where(deliveries.c.next_attempt_us.is_not(None), webhooks.c.enabled)
        )
        with self.database.read() as connection:
            number, oldest = connection.execute(query).one()
        return DeliveryBacklog(number, None if oldest is None else from_us(oldest))

    def for_notifications(self, numbers: Iterable[int]) -> dict[int, list[WebhookDelivery]]:
        """Return the deliveries of these notices, oldest first."""
        query = select(deliveries).where(deliveries.c.notification_id.in_(list(numbers))).order_by(deliveries.c.id)
        found: dict[int, list[WebhookDelivery]] = {}
        with self.database.read() as connection:
            for row in connection.execute(query):
                found.setdefault(row.notification_id, []).append(_delivery(row))
        return found


def _delivery(row: Row[Any]) -> WebhookDelivery:
    return WebhookDelivery(
        id=row.id,
        key=row.key,
        webhook=row.webhook_id,
        notice=row.notification_id,
        created_at=from_us(row.created_us),
        attempts=row.attempts,
        next_try=from_us(row.next_attempt_us) if row.next_attempt_us is not None else None,
        status=row.status,
        answer=row.response,
        delivered_at=from_us(row.delivered_us) if row.delivered_us is not None else None,
        given_up_at=from_us(row.abandoned_us) if row.abandoned_us is not None else None,
    )
