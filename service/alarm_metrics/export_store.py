"""Every stored alarm of a machine in time order, read in pages so that neither memory nor a connection is held."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from typing import Any

from sqlalchemy import ColumnElement, Row, TextClause, select, text, tuple_

from service.database.engine import Database
from service.database.event_row import FROM_THE_FUTURE, TOO_OLD
from service.database.tables import events
from service.machines.events import Cursor, StoredAlarm
from service.machines.models import Machine
from wire.timestamps import from_us, to_us

_PAGE = 2000
_PLACE = (events.c.at_us, events.c.code, events.c.epoch_id, events.c.seq)
_FLAGS = {FROM_THE_FUTURE: "from_the_future", TOO_OLD: "too_old"}
# Each kind has its own partial index, used only if the query has the index's own words; together neither would be.
_KINDS = (text("flag = 0"), text("flag <> 0"))


@dataclass(frozen=True)
class AlarmExports:
    """Reads alarms from the oldest on, flagged ones in their place among the others."""

    database: Database
    page: int = _PAGE

    def alarms(
        self, machine: Machine, start: datetime, end: datetime, *, code: int | None = None
    ) -> Iterator[StoredAlarm]:
        """Yield a machine's alarms in ``[start, end)``; each page sees the store as it is by then."""
        wanted = [
            events.c.machine_id == machine.row_id,
            events.c.at_us >= to_us(start),
            events.c.at_us < to_us(end),
        ]
        if code is not None:
            wanted.append(events.c.code == code)
        kinds = [self._rows(wanted, kind) for kind in _KINDS]
        for row in merge(*kinds, key=_place):
            yield StoredAlarm(from_us(row.at_us), row.code, from_us(row.received_us), _FLAGS.get(row.flag))

    def _rows(self, wanted: list[ColumnElement[bool]], kind: TextClause) -> Iterator[Row[Any]]:
        after: Cursor | None = None
        while True:
            onwards = [] if after is None else [tuple_(*_PLACE) > tuple_(*after)]
            statement = select(events).where(*wanted, kind, *onwards).order_by(*_PLACE).limit(self.page)
            with self.database.read() as connection:
                rows = connection.execute(statement).fetchall()
            yield from rows
            if len(rows) < self.page:
                return
            after = _place(rows[-1])


def _place(row: Row[Any]) -> Cursor:
    return Cursor(row.at_us, row.code, row.epoch_id, row.seq)
