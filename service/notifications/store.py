"""Notices: opened with their deliveries in one transaction, closed once, never two open for one alarm."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection, Row, Select, or_, select, update

from service.database.dialect import insert_rows
from service.database.engine import Database
from service.database.tables import acknowledgements, deliveries, machines, notifications
from service.machines.store import absent
from service.notifications.models import Notification, NotificationChanges, NotificationQuery
from service.notifications.webhook import Webhook
from service.notifications.webhook_store import all_webhooks
from wire.enums import MachineState, NotificationEnd
from wire.identity import MachineId
from wire.timestamps import from_us, to_us

_ROWS = select(notifications, machines.c.site, machines.c.machine).join_from(notifications, machines)
_COLUMNS = (
    "machine_id", "code", "text", "severity", "as_of_us", "horizon_end_us", "probability", "threshold",
    "model_version", "opened_us",
)  # fmt: skip
_DELIVERY = ("notification_id", "webhook_id", "key", "created_us", "attempts", "next_attempt_us")
_NAMED = 1000  # machines in one query
# Nobody shall be told late of what somebody has silenced meanwhile.
_NO_LONGER_TOLD = {
    NotificationEnd.SHELVED: "The alarm was shelved before this could be delivered.",
    NotificationEnd.MAINTENANCE: "A maintenance window began before this could be delivered.",
    NotificationEnd.WITHDRAWN: "The alarm was no longer forecast before this could be delivered.",
}


@dataclass(frozen=True)
class NotificationStore:
    """What was news, and who is to be told."""

    database: Database
    new_key: Callable[[], UUID] = uuid4

    def current(self, chosen: Collection[int], since: datetime) -> list[Notification]:
        """Return what decides about new notices: those open, those not rearmed, those rearmed since.

        Only of the machines in these rows, because a large fleet has many, and of all that were let go.
        """
        concerned = or_(notifications.c.rearmed_us.is_(None), notifications.c.rearmed_us > to_us(since))
        query = _ROWS.where(concerned).order_by(notifications.c.id)
        if len(chosen) <= _NAMED:
            retired = machines.c.state == MachineState.RETIRED.value
            query = query.where(or_(notifications.c.machine_id.in_(list(chosen)), retired))
        return self._all(query)

    def write(self, changes: NotificationChanges, *, at: datetime, wall: datetime) -> int:
        """Write changes in one transaction; return how many notices were really opened.

        A notice that another process has opened meanwhile is left alone, and so is one closed already.
        """
        opened = 0
        with self.database.write() as connection:
            for number, end in changes.closed:
                _close(connection, number, end, at=at, wall=wall)
            for chosen, values, table in (
                (changes.rearmed, {"rearmed_us": to_us(at)}, notifications),
                (changes.ended_acks, {"ended_us": to_us(at)}, acknowledgements),
            ):
                for number in chosen:
                    connection.execute(update(table).where(table.c.id == number).values(**values))
            told = all_webhooks(connection) if changes.opened else []
            for machine, notice in changes.opened:
                opened += self._open(connection, machine, notice, told, wall)
        return opened

    def page(self, query: NotificationQuery) -> list[Notification]:
        """Return notices, newest first."""
        statement: Select[Any] = _ROWS.order_by(notifications.c.id.desc()).limit(query.limit)
        if query.before is not None:
            statement = statement.where(notifications.c.id < query.before)
        if query.site is not None:
            statement = statement.where(machines.c.site == query.site)
        if query.machine is not None:
            statement = statement.where(machines.c.machine == query.machine)
        if query.sites is not None:
            statement = statement.where(machines.c.site.in_(query.sites))
        if query.is_open is not None:
            closed = notifications.c.closed_us
            statement = statement.where(closed.is_(None) if query.is_open else closed.is_not(None))
        return self._all(statement)

    def _open(
        self, connection: Connection, machine: int, notice: Notification, told: list[Webhook], wall: datetime
    ) -> int:
        row = (
            machine, notice.code, notice.text, notice.severity, to_us(notice.as_of), to_us(notice.horizon_end),
            notice.probability, notice.threshold, notice.model_version, to_us(notice.opened_at),
        )  # fmt: skip
        if absent(connection, [machine]) or not insert_rows(connection, notifications, _COLUMNS, [row]):
            return 0
        of_code = (
            notifications.c.machine_id == machine,
            notifications.c.code == notice.code,
            notifications.c.closed_us.is_(None),
        )
        number = connection.execute(select(notifications.c.id).where(*of_code)).scalar_one()
        now = to_us(wall)
        for webhook in told:
            if webhook.wants(notice.machine, notice.severity):
                values = (number, webhook.id, self.new_key(), now, 0, now)
                connection.execute(deliveries.insert().values(**dict(zip(_DELIVERY, values, strict=True))))
        return 1

    def _all(self, statement: Select[Any]) -> list[Notification]:
        with self.database.read() as connection:
            return [notification_from_row(row) for row in connection.execute(statement)]


def notification_from_row(row: Row[Any]) -> Notification:
    """Return a notice from its row, its machine's names beside it."""
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
        closed_at=from_us(row.closed_us) if row.closed_us is not None else None,
        ended=NotificationEnd(row.ended) if row.ended is not None else None,
        rearmed_at=from_us(row.rearmed_us) if row.rearmed_us is not None else None,
    )


def _close(connection: Connection, number: int, end: NotificationEnd, *, at: datetime, wall: datetime) -> None:
    rearmed = None if end is NotificationEnd.CAME else to_us(at)
    values = {"closed_us": to_us(at), "ended": end.value, "rearmed_us": rearmed}
    still = (notifications.c.id == number, notifications.c.closed_us.is_(None))
    changed = connection.execute(update(notifications).where(*still).values(**values))
    if changed.rowcount and end in _NO_LONGER_TOLD:
        waiting = (deliveries.c.notification_id == number, deliveries.c.next_attempt_us.is_not(None))
        given_up = {"next_attempt_us": None, "abandoned_us": to_us(wall), "response": _NO_LONGER_TOLD[end]}
        connection.execute(update(deliveries).where(*waiting).values(**given_up))
