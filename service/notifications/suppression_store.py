"""SQL of shelved alarms, maintenance windows and acknowledgements."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, Table, func, insert, or_, select, update

from service.auth.audit_store import record
from service.database.engine import Database
from service.database.tables import acknowledgements, machines, maintenance_windows, notifications, shelved_alarms
from service.errors import Conflict, NotFound
from service.machines.models import Machine
from service.machines.site_scoped_store import SiteScopedStore
from service.notifications.models import Acknowledgement, MaintenanceWindow, ShelvedAlarm, SuppressionQuery
from wire.identity import MachineId
from wire.timestamps import from_us, to_us

_SHELVES = select(shelved_alarms, machines.c.site, machines.c.machine).join_from(shelved_alarms, machines)
_ACKS = select(acknowledgements, machines.c.site, machines.c.machine).join_from(acknowledgements, machines)


@dataclass(frozen=True)
class ShelvingStore(SiteScopedStore):
    """Shelved alarms."""

    def add(
        self, machine: Machine, code: int, *, at: datetime, until: datetime, who: str, reason: str
    ) -> ShelvedAlarm:
        """Shelve an alarm from now on; this replaces an active shelving of the same alarm."""
        self.require(machine.id.site)
        with self.database.write() as connection:
            active = (
                shelved_alarms.c.machine_id == machine.row_id,
                shelved_alarms.c.code == code,
                shelved_alarms.c.until_us > to_us(at),
                shelved_alarms.c.unshelved_us.is_(None),
            )
            connection.execute(update(shelved_alarms).where(*active).values(unshelved_us=to_us(at)))
            row = {"machine_id": machine.row_id, "code": code, "from_us": to_us(at), "until_us": to_us(until)}
            added = connection.execute(insert(shelved_alarms).values(**row, actor=who, reason=reason))
            subject = f"{machine.id} code {code}"
            record(connection, at=at, who=who, action="shelve", subject=subject, reason=reason)
            shelf_id = int(added.inserted_primary_key[0])  # type: ignore[index]  # an insert of one row has one
        return self.get(shelf_id)

    def get(self, shelf_id: int) -> ShelvedAlarm:
        """Return a shelved alarm, or raise :class:`NotFound`."""
        with self.database.read() as connection:
            row = connection.execute(_SHELVES.where(shelved_alarms.c.id == shelf_id)).one_or_none()
        if row is None or not self.can_see(row.site):
            raise NotFound(f"Shelved alarm {shelf_id} does not exist.")
        return _shelved_alarm(row)

    def unshelve(self, shelved: ShelvedAlarm, *, at: datetime, who: str, reason: str | None) -> ShelvedAlarm:
        """Unshelve an alarm now, or raise :class:`Conflict` if the shelving has ended."""
        self.require(shelved.machine.site)
        with self.database.write() as connection:
            active = (
                shelved_alarms.c.id == shelved.id,
                shelved_alarms.c.unshelved_us.is_(None),
                shelved_alarms.c.until_us > to_us(at),
            )
            changed = connection.execute(update(shelved_alarms).where(*active).values(unshelved_us=to_us(at)))
            if not changed.rowcount:
                raise Conflict(f"Shelved alarm {shelved.id} has already ended.")
            subject = f"{shelved.machine} code {shelved.code}"
            record(connection, at=at, who=who, action="unshelve", subject=subject, reason=reason)
        return self.get(shelved.id)

    def page(self, query: SuppressionQuery) -> list[ShelvedAlarm]:
        """Return shelved alarms, newest first."""
        conditions = _page_conditions(shelved_alarms, query, machines.c.site)
        if query.machine is not None:
            conditions.append(machines.c.machine == query.machine)
        if query.active_at is not None:
            conditions += _active(shelved_alarms, shelved_alarms.c.unshelved_us, query.active_at)
        return self._read(_SHELVES.where(*conditions).order_by(shelved_alarms.c.id.desc()).limit(query.limit))

    def active(self, at: datetime) -> list[ShelvedAlarm]:
        """Return every alarm that is shelved at a moment."""
        return self._read(_SHELVES.where(*_active(shelved_alarms, shelved_alarms.c.unshelved_us, at)))

    def between(self, start: datetime, end: datetime) -> list[ShelvedAlarm]:
        """Return the alarms that were shelved at some time in ``[start, end)``, oldest first."""
        ended = func.coalesce(shelved_alarms.c.unshelved_us, shelved_alarms.c.until_us)
        overlaps = (
            shelved_alarms.c.until_us > to_us(start),
            ended > to_us(start),
            shelved_alarms.c.from_us < to_us(end),
        )
        return self._read(_SHELVES.where(*overlaps).order_by(shelved_alarms.c.id))

    def _read(self, statement: Select[Any]) -> list[ShelvedAlarm]:
        with self.database.read() as connection:
            rows = connection.execute(statement.where(*self.in_sites(machines.c.site)))
            return [_shelved_alarm(row) for row in rows]


@dataclass(frozen=True)
class MaintenanceStore(SiteScopedStore):
    """Maintenance windows."""

    def add(self, window: MaintenanceWindow, *, at: datetime) -> MaintenanceWindow:
        """Store a window and return it with its id."""
        self.require(window.site)
        row = {
            "site": window.site,
            "machine": window.machine,
            "from_us": to_us(window.start),
            "until_us": to_us(window.until),
            "actor": window.actor,
            "reason": window.reason,
        }
        with self.database.write() as connection:
            added = connection.execute(insert(maintenance_windows).values(**row))
            subject = _audit_subject(window)
            record(connection, at=at, who=window.actor, action="maintain", subject=subject, reason=window.reason)
            window_id = int(added.inserted_primary_key[0])  # type: ignore[index]  # an insert of one row has one
        return self.get(window_id)

    def get(self, window_id: int) -> MaintenanceWindow:
        """Return a window, or raise :class:`NotFound`."""
        with self.database.read() as connection:
            row = connection.execute(
                select(maintenance_windows).where(maintenance_windows.c.id == window_id)
            ).one_or_none()
        if row is None or not self.can_see(row.site):
            raise NotFound(f"Maintenance window {window_id} does not exist.")
        return _window(row)

    def cancel(
        self, window: MaintenanceWindow, *, at: datetime, who: str, reason: str | None
    ) -> MaintenanceWindow:
        """End a window now, started or not, or raise :class:`Conflict` if it has ended."""
        self.require(window.site)
        with self.database.write() as connection:
            not_ended = (
                maintenance_windows.c.id == window.id,
                maintenance_windows.c.cancelled_us.is_(None),
                maintenance_windows.c.until_us > to_us(at),
            )
            changed = connection.execute(
                update(maintenance_windows).where(*not_ended).values(cancelled_us=to_us(at))
            )
            if not changed.rowcount:
                raise Conflict(f"Maintenance window {window.id} has already ended.")
            subject = _audit_subject(window)
            record(connection, at=at, who=who, action="end maintenance", subject=subject, reason=reason)
        return self.get(window.id)

    def page(self, query: SuppressionQuery) -> list[MaintenanceWindow]:
        """Return windows, newest first; with a machine those of its whole site too."""
        conditions = _page_conditions(maintenance_windows, query, maintenance_windows.c.site)
        if query.machine is not None:
            conditions.append(
                or_(maintenance_windows.c.machine.is_(None), maintenance_windows.c.machine == query.machine)
            )
        if query.active_at is not None:
            conditions += _active(maintenance_windows, maintenance_windows.c.cancelled_us, query.active_at)
        statement = select(maintenance_windows).where(*conditions)
        return self._read(statement.order_by(maintenance_windows.c.id.desc()).limit(query.limit))

    def active(self, at: datetime) -> list[MaintenanceWindow]:
        """Return every window that is active at a moment."""
        return self._read(
            select(maintenance_windows).where(
                *_active(maintenance_windows, maintenance_windows.c.cancelled_us, at)
            )
        )

    def _read(self, statement: Select[Any]) -> list[MaintenanceWindow]:
        with self.database.read() as connection:
            rows = connection.execute(statement.where(*self.in_sites(maintenance_windows.c.site)))
            return [_window(row) for row in rows]


@dataclass(frozen=True)
class AcknowledgementStore:
    """Acknowledgements; the notification evaluation ends them."""

    database: Database

    def add(self, machine: Machine, code: int, *, at: datetime, who: str, note: str | None) -> Acknowledgement:
        """Acknowledge an alarm, and its open notification if there is one."""
        with self.database.write() as connection:
            is_open = (
                notifications.c.machine_id == machine.row_id,
                notifications.c.code == code,
                notifications.c.webhook_id == 0,
                notifications.c.closed_us.is_(None),
            )
            notification = connection.execute(select(notifications.c.id).where(*is_open)).scalar()
            row = {"machine_id": machine.row_id, "code": code, "notification_id": notification, "at_us": to_us(at)}
            added = connection.execute(insert(acknowledgements).values(**row, actor=who, note=note))
            subject = f"{machine.id} code {code}"
            record(connection, at=at, who=who, action="acknowledge", subject=subject, reason=note)
            ack_id = int(added.inserted_primary_key[0])  # type: ignore[index]  # an insert of one row has one
        return Acknowledgement(ack_id, machine.id, code, from_us(to_us(at)), who, note, notification)

    def active(self) -> list[Acknowledgement]:
        """Return the acknowledgements that have not ended."""
        return self._read(_ACKS.where(acknowledgements.c.ended_us.is_(None)))

    def page(self, query: SuppressionQuery) -> list[Acknowledgement]:
        """Return acknowledgements, newest first; ``active_at`` means: not ended yet."""
        conditions = _page_conditions(acknowledgements, query, machines.c.site)
        if query.machine is not None:
            conditions.append(machines.c.machine == query.machine)
        if query.active_at is not None:
            conditions.append(acknowledgements.c.ended_us.is_(None))
        return self._read(_ACKS.where(*conditions).order_by(acknowledgements.c.id.desc()).limit(query.limit))

    def for_notifications(self, ids: Iterable[int]) -> dict[int, Acknowledgement]:
        """Return the first acknowledgement of each of these notifications that has one."""
        statement = _ACKS.where(acknowledgements.c.notification_id.in_(list(ids))).order_by(acknowledgements.c.id)
        first: dict[int, Acknowledgement] = {}
        for ack in self._read(statement):
            if ack.notification is not None:
                first.setdefault(ack.notification, ack)
        return first

    def _read(self, statement: Select[Any]) -> list[Acknowledgement]:
        with self.database.read() as connection:
            return [_acknowledgement(row) for row in connection.execute(statement)]


def _page_conditions(table: Table, query: SuppressionQuery, site: ColumnElement[str]) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if query.before is not None:
        conditions.append(table.c.id < query.before)
    if query.site is not None:
        conditions.append(site == query.site)
    return conditions


def _active(table: Table, ended_us: ColumnElement[int], at: datetime) -> list[ColumnElement[bool]]:
    now = to_us(at)
    return [table.c.from_us <= now, table.c.until_us > now, or_(ended_us.is_(None), ended_us > now)]


def _audit_subject(window: MaintenanceWindow) -> str:
    return f"{window.site}/{window.machine}" if window.machine else window.site


def _at(us: int | None) -> datetime | None:
    return None if us is None else from_us(us)


def _shelved_alarm(row: Row[Any]) -> ShelvedAlarm:
    return ShelvedAlarm(
        id=row.id,
        machine=MachineId(row.site, row.machine),
        code=row.code,
        start=from_us(row.from_us),
        until=from_us(row.until_us),
        actor=row.actor,
        reason=row.reason,
        unshelved_at=_at(row.unshelved_us),
    )


def _window(row: Row[Any]) -> MaintenanceWindow:
    return MaintenanceWindow(
        id=row.id,
        site=row.site,
        machine=row.machine,
        start=from_us(row.from_us),
        until=from_us(row.until_us),
        actor=row.actor,
        reason=row.reason,
        cancelled_at=_at(row.cancelled_us),
    )


def _acknowledgement(row: Row[Any]) -> Acknowledgement:
    return Acknowledgement(
        id=row.id,
        machine=MachineId(row.site, row.machine),
        code=row.code,
        at=from_us(row.at_us),
        actor=row.actor,
        note=row.note,
        notification=row.notification_id,
        ended_at=_at(row.ended_us),
    )
