"""SQL of answers."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, delete, func, insert, select

from service.auth.audit_store import record
from service.database.tables import answers, catalogue, machines, notifications
from service.errors import NotFound
from service.machines.catalogue import unknown_code
from service.machines.models import Machine
from service.machines.site_scoped_store import SiteScopedStore
from service.machines.store import absent
from wire.enums import Answer
from wire.rest.answers import AnswerCounts, AnswerCreate, AnswerView
from wire.timestamps import from_us, to_us

_ANSWERS = (
    select(answers, machines.c.site, machines.c.machine, catalogue.c.text)
    .join_from(answers, machines)
    .outerjoin(catalogue, catalogue.c.code == answers.c.code)
)
_ROWS_PER_QUERY = 1000


@dataclass(frozen=True)
class AnswerQuery:
    """Filter of answers."""

    site: str | None = None
    machine: str | None = None
    code: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    before: int | None = None
    limit: int = _ROWS_PER_QUERY


@dataclass(frozen=True)
class AnswerStore(SiteScopedStore):
    """Answers of operators."""

    def answer_notification(self, number: int, given: AnswerCreate, *, who: str, at: datetime) -> AnswerView:
        """Store the answer to a notification in place of an earlier one."""
        query = (
            select(notifications.c.id, notifications.c.machine_id, notifications.c.code)
            .join(machines)
            .where(notifications.c.id == number, *self.in_sites(machines.c.site))
            .with_for_update(of=notifications)
        )
        with self.database.write() as connection:
            asked = connection.execute(query).one_or_none()
            if asked is None or absent(connection, [asked.machine_id]):
                raise NotFound(f"Notification {number} does not exist.")
            replaced = answers.c.notification_id == number
            row = {"machine_id": asked.machine_id, "code": asked.code, "notification_id": number}
            return _store(connection, row, replaced, given, who=who, at=at)

    def answer_alarm(
        self, machine: Machine, code: int, given: AnswerCreate, *, who: str, at: datetime, valid: timedelta
    ) -> AnswerView:
        """Store the answer to an expected alarm, or to its notification if one is open.

        Without a notification it replaces the answer of the last ``valid``.
        """
        of_alarm = (notifications.c.machine_id == machine.row_id, notifications.c.code == code)
        with self.database.write() as connection:
            absent(connection, [machine.row_id])
            opened = connection.execute(
                select(notifications.c.id)
                .where(*of_alarm, notifications.c.closed_us.is_(None))
                .order_by(notifications.c.webhook_id)  # 0 is the policy of the site
                .limit(1)
                .with_for_update()
            ).scalar()
            replaced = answers.c.notification_id == opened
            if opened is None:
                of_alarm = (answers.c.machine_id == machine.row_id, answers.c.code == code)
                recent = answers.c.at_us > to_us(at - valid)
                replaced = answers.c.notification_id.is_(None) & of_alarm[0] & of_alarm[1] & recent
            row = {"machine_id": machine.row_id, "code": code, "notification_id": opened}
            return _store(connection, row, replaced, given, who=who, at=at)

    def page(self, query: AnswerQuery) -> list[AnswerView]:
        """Return answers, newest first."""
        found = _ANSWERS.where(*self._conditions(query)).order_by(answers.c.id.desc()).limit(query.limit)
        return self._read(found)

    def all(self, query: AnswerQuery) -> Iterator[AnswerView]:
        """Return all answers, newest first; they are read some hundred at a time."""
        sites = self.sites()  # a response is streamed after its request

        def pages() -> Iterator[AnswerView]:
            store, part = replace(self, sites=lambda: sites), replace(query, limit=_ROWS_PER_QUERY)
            while found := store.page(part):
                yield from found
                part = replace(part, before=found[-1].id)

        return pages()

    def for_notifications(self, ids: Iterable[int]) -> dict[int, AnswerView]:
        """Return the answer of each of these notifications that has one."""
        found = self._read(
            _ANSWERS.where(answers.c.notification_id.in_(list(ids)), *self.in_sites(machines.c.site))
        )
        return {answer.notification: answer for answer in found if answer.notification is not None}

    def counts(self, query: AnswerQuery) -> list[AnswerCounts]:
        """Count answers per machine and code."""
        key = (machines.c.site, machines.c.machine, answers.c.code, catalogue.c.text)
        statement = (
            _ANSWERS.with_only_columns(*key, answers.c.answer, func.count().label("number"))
            .where(*self._conditions(query))
            .group_by(*key, answers.c.answer)
            .order_by(*key[:3])
        )
        found: dict[tuple[str, str, int], dict[str, Any]] = {}
        with self.database.read() as connection:
            for row in connection.execute(statement):
                place = {"site": row.site, "machine": row.machine, "code": row.code, "text": _text(row)}
                found.setdefault((row.site, row.machine, row.code), place)[row.answer] = row.number
        return [AnswerCounts(**fields) for fields in found.values()]

    def _conditions(self, query: AnswerQuery) -> list[ColumnElement[bool]]:
        wanted = (
            (query.site, machines.c.site.__eq__),
            (query.machine, machines.c.machine.__eq__),
            (query.code, answers.c.code.__eq__),
            (query.before, answers.c.id.__lt__),
            (query.since and to_us(query.since), answers.c.at_us.__ge__),
            (query.until and to_us(query.until), answers.c.at_us.__lt__),
        )
        return [
            *self.in_sites(machines.c.site),
            *(compare(value) for value, compare in wanted if value is not None),
        ]

    def _read(self, statement: Select[Any]) -> list[AnswerView]:
        with self.database.read() as connection:
            return [_view(row) for row in connection.execute(statement)]


def _store(
    connection: Connection,
    row: dict[str, Any],
    replaced: ColumnElement[bool],
    given: AnswerCreate,
    *,
    who: str,
    at: datetime,
) -> AnswerView:
    connection.execute(delete(answers).where(replaced))
    row |= {"answer": given.answer.value, "note": given.note, "actor": who, "at_us": to_us(at)}
    added = connection.execute(insert(answers).values(**row)).inserted_primary_key
    stored = _view(connection.execute(_ANSWERS.where(answers.c.id == added[0])).one())  # type: ignore[index]
    subject = f"{stored.site}/{stored.machine} {stored.code}: {stored.answer}"
    record(connection, at=at, who=who, action="answer", subject=subject, reason=stored.note)
    return stored


def _text(row: Row[Any]) -> str:
    return row.text or unknown_code(row.code).text


def _view(row: Row[Any]) -> AnswerView:
    return AnswerView(
        id=row.id,
        site=row.site,
        machine=row.machine,
        code=row.code,
        text=_text(row),
        notification=row.notification_id,
        answer=Answer(row.answer),
        note=row.note,
        actor=row.actor,
        at=from_us(row.at_us),
    )
