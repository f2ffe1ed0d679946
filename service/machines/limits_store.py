"""What was left out because one machine had too much of it: counted in the commit that left it out."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from service.database.dialect import insert_rows
from service.database.engine import Database
from service.database.tables import limit_counts, machines
from service.machines.models import Excess, ExcessKind
from wire.identity import MachineId
from wire.timestamps import from_us, to_us

NO_MACHINE = 0  # the number of no machine, for messages that belong to none
_COLUMNS = ("machine_id", "kind", "amount", "since_us", "last_us")
_ADD = (
    "(machine_id, kind) DO UPDATE SET amount = limit_counts.amount + excluded.amount,"
    " last_us = CASE WHEN excluded.last_us > limit_counts.last_us THEN excluded.last_us"
    " ELSE limit_counts.last_us END"
)
_NAMED = select(limit_counts, machines.c.site, machines.c.machine).join_from(
    limit_counts, machines, isouter=True, onclause=machines.c.id == limit_counts.c.machine_id
)


def note_excess(connection: Connection, counts: Mapping[tuple[int, ExcessKind], int], at_us: int) -> None:
    """Add inside a transaction what was left out, by machine and kind."""
    if not counts:
        return
    rows = [(machine, kind.value, items, at_us, at_us) for (machine, kind), items in sorted(counts.items())]
    insert_rows(connection, limit_counts, _COLUMNS, rows, on_conflict=_ADD)


@dataclass(frozen=True)
class ExcessStore:
    """Which machines have had too much of something."""

    database: Database

    def since(self, since: datetime) -> list[Excess]:
        """Return what was still being left out at or after a moment, most items first."""
        query = _NAMED.where(limit_counts.c.last_us >= to_us(since)).order_by(
            limit_counts.c.amount.desc(), limit_counts.c.kind
        )
        with self.database.read() as connection:
            rows = connection.execute(query).fetchall()
        return [
            Excess(
                MachineId(row.site, row.machine) if row.site is not None else None,
                ExcessKind(row.kind),
                row.amount,
                from_us(row.since_us),
                from_us(row.last_us),
            )
            for row in rows
        ]
