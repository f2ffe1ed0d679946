"""Shelves: which alarms of which machines nobody wants to hear of, from when until when, and why."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, func, insert, or_, select, update

from service.auth.audit_store import record
from service.database.engine import Database
from service.database.tables import machines, shelved_alarms
from service.errors import Conflict, NotFound
from service.machines.models import Machine
from service.notifications.suppression import ShelvedAlarm, SuppressionQuery
from wire.identity import MachineId
from wire.timestamps import from_us, to_us

_ROWS = select(shelved_alarms, machines.c.site, machines.c.machine).join_from(shelved_alarms, machines)


@dataclass(frozen=True)
class ShelvingStore:
    """Kept with its reason; a shelf ends by itself, or is lifted."""

    database: Database

    def add(
        self, machine: Machine, code: int, *, at: datetime, until: datetime, who: str, reason: str
    ) -> ShelvedAlarm:
        """Shelve an alarm from now on; a shelf that holds already gives way to this one."""
        with self.database.write() as connection:
            holding = (
                shelved_alarms.c.machine_id == machine.row_id,
                shelved_alarms.c.code == code,
                shelved_alarms.c.until_us > to_us(at),
                shelved_alarms.c.unshelved_us.is_(None),
            )
            connection.execute(update(shelved_alarms).where(*holding).values(unshelved_us=to_us(at)))
            row = {"machine_id": machine.row_id, "code": code, "from_us": to_us(at), "until_us": to_us(until)}
            added = connection.execute(insert(shelved_alarms).values(**row, actor=who, reason=reason))
            subject = f"{machine.id} code {code}"
            record(connection, at=at, who=who, action="shelve", subject=subject, reason=reason)
            number = int(added.inserted_primary_key[0])  # type: ignore[index]  # an insert of one row has one
        return self.get(number)

    def get(self, number: int) -> ShelvedAlarm:
        """Return a shelf, or raise :class:`NotFound`."""
        with self.database.read() as connection:
            row = connection.execute(_ROWS.where(shelved_alarms.c.id == number)).one_or_none()
        if row is None:
            raise NotFound(f"There is no shelf {number}.")
        return _shelf(row)

    def unshelve(self, shelf: ShelvedAlarm, *, at: datetime, who: str, reason: str | None) -> ShelvedAlarm:
        """End a shelf now; one that has ended is a :class:`Conflict`."""
        with self.database.write() as connection:
            holding = (
                shelved_alarms.c.id == shelf.id,
                shelved_alarms.c.unshelved_us.is_(None),
                shelved_alarms.c.until_us > to_us(at),
            )
            changed = connection.execute(update(shelved_alarms).where(*holding).values(unshelved_us=to_us(at)))
            if not changed.rowcount:
                raise Conflict(f"Shelf {shelf.id} has ended already; there is nothing to lift.")
            subject = f"{shelf.machine} code {shelf.code}"
            record(connection, at=at, who=who, action="unshelve", subject=subject, reason=reason)
        return self.get(shelf.id)

    def page(self, query: SuppressionQuery) -> list[ShelvedAlarm]:
        """Return shelves, newest first."""
        statement: Select[Any] = _ROWS.order_by(shelved_alarms.c.id.desc()).limit(query.limit)
        if query.before is not None:
            statement = statement.where(shelved_alarms.c.id < query.before)
        if query.site is not None:
            statement = statement.where(machines.c.site == query.site)
        if query.machine is not None:
            statement = statement.where(machines.c.machine == query.machine)
        if query.sites is not None:
            statement = statement.where(machines.c.site.in_(query.sites))
        if query.active_at is not None:
            statement = _holding(statement, query.active_at)
        return self._all(statement)

    def active(self, at: datetime) -> list[ShelvedAlarm]:
        """Return every shelf that holds at a moment."""
        return self._all(_holding(_ROWS, at))

    def between(self, start: datetime, end: datetime) -> list[ShelvedAlarm]:
        """Return the shelves that held at some time in ``[start, end)``, oldest first."""
        ended = func.coalesce(shelved_alarms.c.unshelved_us, shelved_alarms.c.until_us)
        return self._all(
            _ROWS.where(
                shelved_alarms.c.until_us > to_us(start),
                ended > to_us(start),
                shelved_alarms.c.from_us < to_us(end),
            ).order_by(shelved_alarms.c.id)
        )

    def _all(self, statement: Select[Any]) -> list[ShelvedAlarm]:
        with self.database.read() as connection:
            return [_shelf(row) for row in connection.execute(statement)]


def _holding(statement: Select[Any], at: datetime) -> Select[Any]:
    now = to_us(at)
    lifted = or_(shelved_alarms.c.unshelved_us.is_(None), shelved_alarms.c.unshelved_us > now)
    return statement.where(shelved_alarms.c.from_us <= now, shelved_alarms.c.until_us > now, lifted)


def _shelf(row: Row[Any]) -> ShelvedAlarm:
    return ShelvedAlarm(
        id=row.id,
        machine=MachineId(row.site, row.machine),
        code=row.code,
        start=from_us(row.from_us),
        until=from_us(row.until_us),
        actor=row.actor,
        reason=row.reason,
        unshelved_at=from_us(row.unshelved_us) if row.unshelved_us is not None else None,
    )
