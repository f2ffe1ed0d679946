"""Acknowledgements: who knew of which alarm, and since when it is no longer likely."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, insert, select

from service.auth.audit_store import record as write_down
from service.database.engine import Database
from service.database.tables import acknowledgements, machines, notifications
from service.machines.models import Machine
from service.notifications.suppression import Acknowledgement, SuppressionQuery
from wire.identity import MachineId
from wire.timestamps import from_us, to_us

_ROWS = select(acknowledgements, machines.c.site, machines.c.machine).join_from(acknowledgements, machines)


@dataclass(frozen=True)
class AcknowledgementStore:
    """Only ever added to; a look at the forecasts ends them."""

    database: Database

    def add(self, machine: Machine, code: int, *, at: datetime, who: str, note: str | None) -> Acknowledgement:
        """Note that somebody knows of an alarm, and of its open notice if there is one."""
        with self.database.write() as connection:
            of_code = (
                notifications.c.machine_id == machine.row_id,
                notifications.c.code == code,
                notifications.c.closed_us.is_(None),
            )
            told = connection.execute(select(notifications.c.id).where(*of_code)).scalar()
            row = {"machine_id": machine.row_id, "code": code, "notification_id": told, "at_us": to_us(at)}
            added = connection.execute(insert(acknowledgements).values(**row, actor=who, note=note))
            subject = f"{machine.id} code {code}"
            write_down(connection, at=at, who=who, action="acknowledge", subject=subject, reason=note)
            number = int(added.inserted_primary_key[0])  # type: ignore[index]  # an insert of one row has one
        return Acknowledgement(number, machine.id, code, from_us(to_us(at)), who, note, told)

    def active(self) -> list[Acknowledgement]:
        """Return those whose alarm has been likely ever since."""
        return self._all(_ROWS.where(acknowledgements.c.ended_us.is_(None)))

    def page(self, query: SuppressionQuery) -> list[Acknowledgement]:
        """Return acknowledgements, newest first; whether one holds depends on no moment but now."""
        statement: Select[Any] = _ROWS.order_by(acknowledgements.c.id.desc()).limit(query.limit)
        if query.before is not None:
            statement = statement.where(acknowledgements.c.id < query.before)
        if query.site is not None:
            statement = statement.where(machines.c.site == query.site)
        if query.machine is not None:
            statement = statement.where(machines.c.machine == query.machine)
        if query.active_at is not None:
            statement = statement.where(acknowledgements.c.ended_us.is_(None))
        return self._all(statement)

    def for_notifications(self, numbers: Iterable[int]) -> dict[int, Acknowledgement]:
        """Return the first acknowledgement of each of these notices that has one."""
        statement = _ROWS.where(acknowledgements.c.notification_id.in_(list(numbers)))
        found: dict[int, Acknowledgement] = {}
        for one in self._all(statement.order_by(acknowledgements.c.id)):
            if one.notice is not None:
                found.setdefault(one.notice, one)
        return found

    def _all(self, statement: Select[Any]) -> list[Acknowledgement]:
        with self.database.read() as connection:
            return [_acknowledgement(row) for row in connection.execute(statement)]


def _acknowledgement(row: Row[Any]) -> Acknowledgement:
    return Acknowledgement(
        id=row.id,
        machine=MachineId(row.site, row.machine),
        code=row.code,
        at=from_us(row.at_us),
        actor=row.actor,
        note=row.note,
        notice=row.notification_id,
        ended_at=from_us(row.ended_us) if row.ended_us is not None else None,
    )
