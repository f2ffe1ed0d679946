"""Deliveries: an outbox that survives every restart; each is tried by one courier at a time, until it is over."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, func, select, update

from service.core.webhook import Answer, Delivery, DeliveryBacklog, Parcel
from service.store.audit import note
from service.store.engine import Database
from service.store.notices import notification_from_row
from service.store.tables import deliveries, machines, notices, webhooks
from service.store.webhooks import webhook_of
from wire.micros import micros, moment


@dataclass(frozen=True)
class DeliveryStore:
    """What is on its way, and what became of it; times are wall time."""

    database: Database

    def due(self, now: datetime, *, limit: int, not_to: Iterable[int] = ()) -> list[Delivery]:
        """Return the deliveries whose time has come, longest due first, except to some webhooks."""
        query = (
            select(deliveries)
            .join(webhooks)
            .where(
                deliveries.c.next_try_us <= micros(now),
                webhooks.c.enabled,
                deliveries.c.webhook_id.not_in(list(not_to)),
            )
            .order_by(deliveries.c.next_try_us, deliveries.c.id)
            .limit(limit)
        )
        with self.database.read() as connection:
            return [_delivery(row) for row in connection.execute(query)]

    def claim(self, delivery: Delivery, *, now: datetime, lease: timedelta) -> Parcel | None:
        """Count another attempt before it is made, or return None if somebody else was quicker.

        Should this process die on the way, the delivery is due again when the lease has run out.
        """
        until = micros(now + lease)
        with self.database.write() as connection:
            seen = micros(delivery.next_try) if delivery.next_try is not None else None
            mine = (deliveries.c.id == delivery.number, deliveries.c.next_try_us == seen)
            values = {"attempts": deliveries.c.attempts + 1, "next_try_us": until}
            if not connection.execute(update(deliveries).where(*mine).values(**values)).rowcount:
                return None
            hook = connection.execute(select(webhooks).where(webhooks.c.id == delivery.webhook)).one()
            news = connection.execute(
                select(notices, machines.c.site, machines.c.machine)
                .join_from(notices, machines)
                .where(notices.c.id == delivery.notice)
            ).one()
        taken = replace(delivery, attempts=delivery.attempts + 1, next_try=moment(until))
        return Parcel(taken, webhook_of(hook), notification_from_row(news))

    def settle(self, delivery: Delivery, answer: Answer, *, now: datetime, again: datetime | None) -> None:
        """Note what a receiver said to the attempt that was taken up, and when to try again, if ever.

        One that was given up meanwhile, or taken up by another, keeps what it has, unless it was delivered.
        """
        values: dict[str, Any] = {"status": answer.status, "answer": answer.text}
        values["next_try_us"] = micros(again) if again is not None and not answer.ok else None
        if answer.ok:
            values |= {"delivered_us": micros(now), "given_up_us": None}
        elif again is None:
            values["given_up_us"] = micros(now)
        with self.database.write() as connection:
            chosen = update(deliveries).where(deliveries.c.id == delivery.number)
            if not answer.ok:
                taken = micros(delivery.next_try) if delivery.next_try is not None else None
                chosen = chosen.where(deliveries.c.next_try_us == taken)
            connection.execute(chosen.values(**values))

    def abandon(self, webhook: int, *, now: datetime, plant_at: datetime, why: str) -> None:
        """End all that waits for a webhook and disable it, because its receiver said that it is gone."""
        with self.database.write() as connection:
            waiting = (deliveries.c.webhook_id == webhook, deliveries.c.next_try_us.is_not(None))
            ended = {"next_try_us": None, "given_up_us": micros(now), "answer": why}
            connection.execute(update(deliveries).where(*waiting).values(**ended))
            switched = update(webhooks).where(webhooks.c.id == webhook)
            connection.execute(switched.values(enabled=False, trouble=why))
            subject = f"webhook {webhook}"
            note(connection, at=plant_at, who="service", action="disable", subject=subject, reason=why)

    def waiting(self) -> DeliveryBacklog:
        """Return how much is still to be delivered to webhooks that are enabled, and since when."""
        query = (
            select(func.count(), func.min(deliveries.c.created_us))
            .join_from(deliveries, webhooks)
            .where(deliveries.c.next_try_us.is_not(None), webhooks.c.enabled)
        )
        with self.database.read() as connection:
            number, oldest = connection.execute(query).one()
        return DeliveryBacklog(number, None if oldest is None else moment(oldest))

    def for_notifications(self, numbers: Iterable[int]) -> dict[int, list[Delivery]]:
        """Return the deliveries of these notices, oldest first."""
        query = select(deliveries).where(deliveries.c.notice_id.in_(list(numbers))).order_by(deliveries.c.id)
        found: dict[int, list[Delivery]] = {}
        with self.database.read() as connection:
            for row in connection.execute(query):
                found.setdefault(row.notice_id, []).append(_delivery(row))
        return found


def _delivery(row: Row[Any]) -> Delivery:
    return Delivery(
        number=row.id,
        key=row.key,
        webhook=row.webhook_id,
        notice=row.notice_id,
        created_at=moment(row.created_us),
        attempts=row.attempts,
        next_try=moment(row.next_try_us) if row.next_try_us is not None else None,
        status=row.status,
        answer=row.answer,
        delivered_at=moment(row.delivered_us) if row.delivered_us is not None else None,
        given_up_at=moment(row.given_up_us) if row.given_up_us is not None else None,
    )
