"""Maintenance windows: when nothing is told of a machine or a site, planned ahead, and why."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, insert, or_, select, update

from service.auth.audit_store import record
from service.database.engine import Database
from service.database.tables import maintenance_windows
from service.errors import Conflict, NotFound
from service.notifications.suppression import MaintenanceWindow, SuppressionQuery
from wire.timestamps import from_us, to_us


@dataclass(frozen=True)
class MaintenanceStore:
    """Kept with its reason; a window ends by itself, or is cancelled."""

    database: Database

    def add(self, window: MaintenanceWindow, *, at: datetime) -> MaintenanceWindow:
        """Keep a new window, whose number is given here."""
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
            subject = _subject(window)
            record(connection, at=at, who=window.actor, action="maintain", subject=subject, reason=window.reason)
            number = int(added.inserted_primary_key[0])  # type: ignore[index]  # an insert of one row has one
        return self.get(number)

    def get(self, number: int) -> MaintenanceWindow:
        """Return a window, or raise :class:`NotFound`."""
        with self.database.read() as connection:
            row = connection.execute(
                select(maintenance_windows).where(maintenance_windows.c.id == number)
            ).one_or_none()
        if row is None:
            raise NotFound(f"There is no maintenance window {number}.")
        return _window(row)

    def cancel(
        self, window: MaintenanceWindow, *, at: datetime, who: str, reason: str | None
    ) -> MaintenanceWindow:
        """End a window now, begun or not; one that is over is a :class:`Conflict`."""
        with self.database.write() as connection:
            standing = (
                maintenance_windows.c.id == window.id,
                maintenance_windows.c.cancelled_us.is_(None),
                maintenance_windows.c.until_us > to_us(at),
            )
            changed = connection.execute(
                update(maintenance_windows).where(*standing).values(cancelled_us=to_us(at))
            )
            if not changed.rowcount:
                raise Conflict(f"Maintenance window {window.id} is over already; there is nothing to cancel.")
            record(connection, at=at, who=who, action="end maintenance", subject=_subject(window), reason=reason)
        return self.get(window.id)

    def page(self, query: SuppressionQuery) -> list[MaintenanceWindow]:
        """Return windows, newest first; those of a machine are its own and its site's."""
        statement: Select[Any] = (
            select(maintenance_windows).order_by(maintenance_windows.c.id.desc()).limit(query.limit)
        )
        if query.before is not None:
            statement = statement.where(maintenance_windows.c.id < query.before)
        if query.site is not None:
            statement = statement.where(maintenance_windows.c.site == query.site)
        if query.machine is not None:
            own = maintenance_windows.c.machine == query.machine
            statement = statement.where(or_(maintenance_windows.c.machine.is_(None), own))
        if query.sites is not None:
            statement = statement.where(maintenance_windows.c.site.in_(query.sites))
        if query.active_at is not None:
            statement = _holding(statement, query.active_at)
        return self._all(statement)

    def active(self, at: datetime) -> list[MaintenanceWindow]:
        """Return every window that a moment lies in."""
        return self._all(_holding(select(maintenance_windows), at))

    def _all(self, statement: Select[Any]) -> list[MaintenanceWindow]:
        with self.database.read() as connection:
            return [_window(row) for row in connection.execute(statement)]


def _holding(statement: Select[Any], at: datetime) -> Select[Any]:
    now = to_us(at)
    standing = or_(maintenance_windows.c.cancelled_us.is_(None), maintenance_windows.c.cancelled_us > now)
    return statement.where(maintenance_windows.c.from_us <= now, maintenance_windows.c.until_us > now, standing)


def _subject(window: MaintenanceWindow) -> str:
    return f"{window.site}/{window.machine}" if window.machine else window.site


def _window(row: Row[Any]) -> MaintenanceWindow:
    return MaintenanceWindow(
        id=row.id,
        site=row.site,
        machine=row.machine,
        start=from_us(row.from_us),
        until=from_us(row.until_us),
        actor=row.actor,
        reason=row.reason,
        cancelled_at=from_us(row.cancelled_us) if row.cancelled_us is not None else None,
    )
