"""SQL of the alarm export: read in pages, so that no connection stays open."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from typing import Any

from sqlalchemy import ColumnElement, Row, TextClause, select, text, tuple_

from service.database.engine import Database
from service.database.event_row import flags_in, time_flag_of
from service.database.tables import events
from service.machines.events import Cursor, StoredAlarm
from service.machines.models import Machine
from wire.timestamps import from_us, to_us

_PAGE = 2000
_ORDER = (events.c.at_us, events.c.code, events.c.epoch_id, events.c.seq)
# Each has its own partial index, used only if the query repeats the condition of the index.
_FLAG_CONDITIONS = tuple(text(flags_in(None, flagged=flagged)) for flagged in (False, True))


@dataclass(frozen=True)
class AlarmExports:
    """Reads alarms in time order, including flagged ones."""

    database: Database
    page: int = _PAGE

    def alarms(
        self, machine: Machine, start: datetime, end: datetime, *, code: int | None = None
    ) -> Iterator[StoredAlarm]:
        """Yield the alarms of a machine in ``[start, end)``; each page is a query of its own."""
        conditions = [
            events.c.machine_id == machine.row_id,
            events.c.at_us >= to_us(start),
            events.c.at_us < to_us(end),
        ]
        if code is not None:
            conditions.append(events.c.code == code)
        parts = [self._rows(conditions, condition) for condition in _FLAG_CONDITIONS]
        for row in merge(*parts, key=_cursor):
            yield StoredAlarm(from_us(row.at_us), row.code, from_us(row.received_us), time_flag_of(row.flag))

    def _rows(self, conditions: list[ColumnElement[bool]], condition: TextClause) -> Iterator[Row[Any]]:
        after: Cursor | None = None
        while True:
            onwards = [] if after is None else [tuple_(*_ORDER) > tuple_(*after)]
            statement = select(events).where(*conditions, condition, *onwards).order_by(*_ORDER).limit(self.page)
            with self.database.read() as connection:
                rows = connection.execute(statement).fetchall()
            yield from rows
            if len(rows) < self.page:
                return
            after = _cursor(rows[-1])


def _cursor(row: Row[Any]) -> Cursor:
    return Cursor(row.at_us, row.code, row.epoch_id, row.seq)
