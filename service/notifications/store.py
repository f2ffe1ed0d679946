"""SQL of notifications, webhooks and their deliveries (an outbox)."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, Connection, Row, Select, delete, func, insert, or_, select, update

from service.auth.audit_store import record
from service.database.dialect import insert_rows
from service.database.engine import Database
from service.database.tables import acknowledgements, catalogue, deliveries, machines, notifications, webhooks
from service.errors import NotFound
from service.machines.catalogue_store import RESPONSE, response_of
from service.machines.site_scoped_store import SiteScopedStore
from service.machines.store import absent
from service.notifications.models import Notification, NotificationChanges, NotificationQuery
from service.notifications.webhook import DeliveryBacklog, DeliveryJob, DeliveryResult, Webhook, WebhookDelivery
from wire.enums import MachineState, NotificationEnd, Severity
from wire.identity import MachineId
from wire.rest.policies import NotificationPolicy
from wire.timestamps import from_us, to_us

_NOTIFICATIONS = (
    select(notifications, machines.c.site, machines.c.machine, *(catalogue.c[name] for name in RESPONSE))
    .join_from(notifications, machines)
    .outerjoin(catalogue, catalogue.c.code == notifications.c.code)
)
_NOTIFICATION_COLUMNS = (
    "machine_id", "code", "text", "severity", "as_of_us", "horizon_end_us", "probability", "threshold",
    "model_version", "opened_us", "webhook_id", "held_back", "similar_right", "similar_total",
)  # fmt: skip
_MAX_QUERY_MACHINES = 1000
# Deliveries still waiting are abandoned when the notification is closed for one of these reasons.
_ABANDON_REASONS = {
    NotificationEnd.SHELVED: "The alarm was shelved before this could be delivered.",
    NotificationEnd.MAINTENANCE: "A maintenance window started before this could be delivered.",
    NotificationEnd.WITHDRAWN: "The alarm was no longer forecast before this could be delivered.",
}


@dataclass(frozen=True)
class NotificationStore(SiteScopedStore):
    """Notifications; at most one is open per machine and code."""

    new_key: Callable[[], UUID] = uuid4

    def current(self, machine_ids: Collection[int], since: datetime) -> list[Notification]:
        """Return the notifications that are open, not rearmed, or rearmed after ``since``.

        Only those of these machines, because a large fleet has many, and of retired machines.
        """
        recent = or_(notifications.c.rearmed_us.is_(None), notifications.c.rearmed_us > to_us(since))
        query = _NOTIFICATIONS.where(recent).order_by(notifications.c.id)
        if len(machine_ids) <= _MAX_QUERY_MACHINES:
            retired = machines.c.state == MachineState.RETIRED.value
            query = query.where(or_(notifications.c.machine_id.in_(list(machine_ids)), retired))
        return self._read(query)

    def page(self, query: NotificationQuery) -> list[Notification]:
        """Return notifications, newest first."""
        conditions = self.in_sites(machines.c.site)
        if query.before is not None:
            conditions.append(notifications.c.id < query.before)
        if query.site is not None:
            conditions.append(machines.c.site == query.site)
        if query.machine is not None:
            conditions.append(machines.c.machine == query.machine)
        if query.is_open is not None:
            closed = notifications.c.closed_us
            conditions.append(closed.is_(None) if query.is_open else closed.is_not(None))
        return self._read(_NOTIFICATIONS.where(*conditions).order_by(notifications.c.id.desc()).limit(query.limit))

    def write(self, changes: NotificationChanges, *, at: datetime, wall: datetime) -> int:
        """Write changes in one transaction; return how many notifications were opened.

        A notification that another process has opened or closed meanwhile is left unchanged.
        """
        opened = 0
        with self.database.write() as connection:
            for notification_id, end in changes.closed:
                _close(connection, notification_id, end, at=at, wall=wall)
            for ids, values, table in (
                (changes.rearmed, {"rearmed_us": to_us(at)}, notifications),
                (changes.ended_acks, {"ended_us": to_us(at)}, acknowledgements),
            ):
                for row_id in ids:
                    connection.execute(update(table).where(table.c.id == row_id).values(**values))
            receivers = _all_webhooks(connection) if changes.opened else []
            for machine_id, notification in changes.opened:
                opened += self._open(connection, machine_id, notification, receivers, wall)
        return opened

    def _open(
        self,
        connection: Connection,
        machine_id: int,
        notification: Notification,
        receivers: list[Webhook],
        wall: datetime,
    ) -> int:
        row = (
            machine_id, notification.code, notification.text, notification.severity, to_us(notification.as_of),
            to_us(notification.horizon_end), notification.probability, notification.threshold,
            notification.model_version, to_us(notification.opened_at), notification.webhook,
            notification.held_back, notification.similar_right, notification.similar_total,
        )  # fmt: skip
        if absent(connection, [machine_id]) or not insert_rows(
            connection, notifications, _NOTIFICATION_COLUMNS, [row]
        ):
            return 0
        is_open = (
            notifications.c.machine_id == machine_id,
            notifications.c.code == notification.code,
            notifications.c.webhook_id == notification.webhook,
            notifications.c.closed_us.is_(None),
        )
        notification_id = connection.execute(select(notifications.c.id).where(*is_open)).scalar_one()
        for webhook in receivers:
            chosen = webhook.id == notification.webhook if webhook.policy else not notification.webhook
            wanted = chosen and not notification.held_back
            if wanted and webhook.accepts(notification.machine, notification.severity):
                values = {
                    "notification_id": notification_id,
                    "webhook_id": webhook.id,
                    "key": self.new_key(),
                    "created_us": to_us(wall),
                    "attempts": 0,
                    "next_attempt_us": to_us(wall),
                }
                connection.execute(insert(deliveries).values(**values))
        return 1

    def _read(self, statement: Select[Any]) -> list[Notification]:
        with self.database.read() as connection:
            return [_notification(row) for row in connection.execute(statement)]


@dataclass(frozen=True)
class WebhookStore(SiteScopedStore):
    """Webhooks; one without a site is visible only to users of all sites."""

    def add(self, webhook: Webhook, *, who: str, reason: str | None) -> Webhook:
        """Store a webhook and return it with its id."""
        self.require(webhook.site)
        row = {
            "url": webhook.url,
            "secret": webhook.secret,
            "severity": webhook.severity.value,
            "site": webhook.site,
            "machine": webhook.machine,
            "enabled": webhook.enabled,
            "created_us": to_us(webhook.created_at),
            "policy": webhook.policy and webhook.policy.model_dump_json(),
        }
        with self.database.write() as connection:
            added = connection.execute(insert(webhooks).values(**row))
            webhook_id = int(added.inserted_primary_key[0])  # type: ignore[index]  # an insert of one row has one
            subject = _audit_subject(webhook_id)
            record(connection, at=webhook.created_at, who=who, action="add", subject=subject, reason=reason)
        return self.get(webhook_id)

    def all(self) -> list[Webhook]:
        """Return every webhook, oldest first."""
        with self.database.read() as connection:
            return [webhook for webhook in _all_webhooks(connection) if self.can_see(webhook.site)]

    def get(self, webhook_id: int) -> Webhook:
        """Return a webhook, or raise :class:`NotFound`."""
        with self.database.read() as connection:
            row = connection.execute(select(webhooks).where(webhooks.c.id == webhook_id)).one_or_none()
        if row is None or not self.can_see(row.site):
            raise NotFound(f"Webhook {webhook_id} does not exist.")
        return _webhook(row)

    def switch(self, webhook: Webhook, *, enabled: bool, at: datetime, who: str, reason: str | None) -> Webhook:
        """Enable or disable a webhook; waiting deliveries of a disabled one stay waiting."""
        self.require(webhook.site)
        with self.database.write() as connection:
            values = {"enabled": enabled, "error": None if enabled else reason}
            connection.execute(update(webhooks).where(webhooks.c.id == webhook.id).values(**values))
            action = "enable" if enabled else "disable"
            record(connection, at=at, who=who, action=action, subject=_audit_subject(webhook.id), reason=reason)
        return self.get(webhook.id)

    def remove(self, webhook: Webhook, *, at: datetime, who: str, reason: str | None) -> None:
        """Delete a webhook, its deliveries and the notifications of its own policy; others stay."""
        self.require(webhook.site)
        with self.database.write() as connection:
            connection.execute(delete(notifications).where(notifications.c.webhook_id == webhook.id))
            connection.execute(delete(deliveries).where(deliveries.c.webhook_id == webhook.id))
            connection.execute(delete(webhooks).where(webhooks.c.id == webhook.id))
            subject = _audit_subject(webhook.id)
            record(connection, at=at, who=who, action="remove", subject=subject, reason=reason)


@dataclass(frozen=True)
class DeliveryStore:
    """Webhook deliveries: an outbox in which one sender at a time claims a delivery; times are wall time."""

    database: Database

    def due(self, now: datetime, *, limit: int, exclude_webhooks: Iterable[int] = ()) -> list[WebhookDelivery]:
        """Return deliveries to enabled webhooks whose next attempt is due, longest due first."""
        query = (
            select(deliveries)
            .join(webhooks)
            .where(
                deliveries.c.next_attempt_us <= to_us(now),
                webhooks.c.enabled,
                deliveries.c.webhook_id.not_in(list(exclude_webhooks)),
            )
            .order_by(deliveries.c.next_attempt_us, deliveries.c.id)
            .limit(limit)
        )
        with self.database.read() as connection:
            return [_delivery(row) for row in connection.execute(query)]

    def claim(self, delivery: WebhookDelivery, *, now: datetime, lease: timedelta) -> DeliveryJob | None:
        """Count an attempt before it is made; return None if another sender has claimed the delivery.

        If this process dies, the delivery is due again when the lease expires.
        """
        expires_us = to_us(now + lease)
        with self.database.write() as connection:
            unclaimed = (deliveries.c.id == delivery.id, deliveries.c.next_attempt_us == _us(delivery.next_try))
            values = {"attempts": deliveries.c.attempts + 1, "next_attempt_us": expires_us}
            if not connection.execute(update(deliveries).where(*unclaimed).values(**values)).rowcount:
                return None
            webhook = connection.execute(select(webhooks).where(webhooks.c.id == delivery.webhook)).one()
            notification = connection.execute(
                _NOTIFICATIONS.where(notifications.c.id == delivery.notification)
            ).one()
        claimed = replace(delivery, attempts=delivery.attempts + 1, next_try=from_us(expires_us))
        return DeliveryJob(claimed, _webhook(webhook), _notification(notification))

    def complete(
        self, delivery: WebhookDelivery, result: DeliveryResult, *, now: datetime, next_try: datetime | None
    ) -> None:
        """Store the result of a claimed attempt and the time of the next, if any.

        A failure changes nothing if the delivery was abandoned or claimed by another sender meanwhile.
        """
        values: dict[str, Any] = {"status": result.status, "response": result.text}
        values["next_attempt_us"] = None if result.ok else _us(next_try)
        if result.ok:
            values |= {"delivered_us": to_us(now), "abandoned_us": None}
        elif next_try is None:
            values["abandoned_us"] = to_us(now)
        with self.database.write() as connection:
            statement = update(deliveries).where(deliveries.c.id == delivery.id)
            if not result.ok:
                statement = statement.where(deliveries.c.next_attempt_us == _us(delivery.next_try))
            connection.execute(statement.values(**values))

    def abandon(self, webhook_id: int, *, now: datetime, plant_at: datetime, reason: str) -> None:
        """Give up all waiting deliveries of a webhook and disable it."""
        with self.database.write() as connection:
            _give_up(connection, deliveries.c.webhook_id == webhook_id, now=now, reason=reason)
            webhook = update(webhooks).where(webhooks.c.id == webhook_id)
            connection.execute(webhook.values(enabled=False, error=reason))
            subject = _audit_subject(webhook_id)
            record(connection, at=plant_at, who="service", action="disable", subject=subject, reason=reason)

    def backlog(self) -> DeliveryBacklog:
        """Return the number and age of waiting deliveries to enabled webhooks."""
        query = (
            select(func.count(), func.min(deliveries.c.created_us))
            .join_from(deliveries, webhooks)
            .where(deliveries.c.next_attempt_us.is_not(None), webhooks.c.enabled)
        )
        with self.database.read() as connection:
            count, oldest = connection.execute(query).one()
        return DeliveryBacklog(count, None if oldest is None else from_us(oldest))

    def for_notifications(self, ids: Iterable[int]) -> dict[int, list[WebhookDelivery]]:
        """Return the deliveries of these notifications, oldest first."""
        query = select(deliveries).where(deliveries.c.notification_id.in_(list(ids))).order_by(deliveries.c.id)
        by_notification: dict[int, list[WebhookDelivery]] = {}
        with self.database.read() as connection:
            for row in connection.execute(query):
                by_notification.setdefault(row.notification_id, []).append(_delivery(row))
        return by_notification


def _close(
    connection: Connection, notification_id: int, end: NotificationEnd, *, at: datetime, wall: datetime
) -> None:
    rearmed = None if end is NotificationEnd.OCCURRED else to_us(at)
    values = {"closed_us": to_us(at), "ended": end.value, "rearmed_us": rearmed}
    is_open = (notifications.c.id == notification_id, notifications.c.closed_us.is_(None))
    changed = connection.execute(update(notifications).where(*is_open).values(**values))
    if changed.rowcount and end in _ABANDON_REASONS:
        _give_up(
            connection, deliveries.c.notification_id == notification_id, now=wall, reason=_ABANDON_REASONS[end]
        )


def _give_up(connection: Connection, which: ColumnElement[bool], *, now: datetime, reason: str) -> None:
    values = {"next_attempt_us": None, "abandoned_us": to_us(now), "response": reason}
    connection.execute(update(deliveries).where(which, deliveries.c.next_attempt_us.is_not(None)).values(**values))


def _all_webhooks(connection: Connection) -> list[Webhook]:
    return [_webhook(row) for row in connection.execute(select(webhooks).order_by(webhooks.c.id))]


def _audit_subject(webhook_id: int) -> str:
    return f"webhook {webhook_id}"  # not its URL, which may hold a token


def _us(at: datetime | None) -> int | None:
    return None if at is None else to_us(at)


def _at(us: int | None) -> datetime | None:
    return None if us is None else from_us(us)


def _notification(row: Row[Any]) -> Notification:
    return Notification(
        id=row.id,
        machine=MachineId(row.site, row.machine),
        code=row.code,
        text=row.text,
        severity=row.severity,
        as_of=from_us(row.as_of_us),
        horizon_end=from_us(row.horizon_end_us),
        probability=row.probability,
        threshold=row.threshold,
        model_version=row.model_version,
        opened_at=from_us(row.opened_us),
        closed_at=_at(row.closed_us),
        ended=None if row.ended is None else NotificationEnd(row.ended),
        rearmed_at=_at(row.rearmed_us),
        webhook=row.webhook_id,
        held_back=bool(row.held_back),
        similar_right=row.similar_right,
        similar_total=row.similar_total,
        response=response_of(row),
    )


def _webhook(row: Row[Any]) -> Webhook:
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
        policy=row.policy and NotificationPolicy.model_validate_json(row.policy),
    )


def _delivery(row: Row[Any]) -> WebhookDelivery:
    return WebhookDelivery(
        id=row.id,
        key=row.key,
        webhook=row.webhook_id,
        notification=row.notification_id,
        created_at=from_us(row.created_us),
        attempts=row.attempts,
        next_try=_at(row.next_attempt_us),
        status=row.status,
        answer=row.response,
        delivered_at=_at(row.delivered_us),
        given_up_at=_at(row.abandoned_us),
    )
