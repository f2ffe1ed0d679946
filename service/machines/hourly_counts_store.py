"""The last hours of many machines, read in two statements from the index of windows alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import bindparam, text

from service.database.engine import Database
from service.machines.models import HOUR, HourlyCounts, Machine
from wire.timestamps import from_us, to_us

_HOUR_US = int(HOUR.total_seconds()) * 1_000_000
_AT_ONCE = 500  # machines a statement; both databases take this many values
# Written with the literal the partial index names, or neither database would use it.
COUNTS = text(
    f"SELECT machine_id, (at_us - :start) / {_HOUR_US} AS hour, count(*) FROM events"  # noqa: S608 - our number
    " WHERE machine_id IN :machines AND at_us >= :start AND at_us < :end AND flag = 0 GROUP BY 1, 2"
).bindparams(bindparam("machines", expanding=True))
# One look at the index's end for each machine; a maximum with GROUP BY would read all that a machine ever raised.
_NEWEST = (
    "SELECT {} FROM events WHERE machine_id = machines.id AND flag = 0 ORDER BY at_us DESC, code DESC LIMIT 1"
)
LAST = text(
    f"SELECT id, ({_NEWEST.format('at_us')}), ({_NEWEST.format('code')}) FROM machines WHERE id IN :machines"  # noqa: S608
).bindparams(bindparam("machines", expanding=True))


@dataclass(frozen=True)
class HourlyCountStore:
    """Counts the trustworthy alarms of the hours before a moment."""

    database: Database

    def counts(self, machines: Sequence[Machine], end: datetime, hours: int) -> dict[int, HourlyCounts]:
        """Return each machine's strip of ``hours`` hours before ``end``, by row."""
        start, rows = to_us(end) - hours * _HOUR_US, [machine.row_id for machine in machines]
        counts = {row: [0] * hours for row in rows}
        last: dict[int, tuple[int, int]] = {}
        with self.database.read() as connection:
            for first in range(0, len(rows), _AT_ONCE):
                some = {"machines": rows[first : first + _AT_ONCE]}
                for row, hour, number in connection.execute(COUNTS, some | {"start": start, "end": to_us(end)}):
                    counts[row][hour] = number
                last |= {row: (at, code) for row, at, code in connection.execute(LAST, some) if at is not None}
        return {row: _strip(tuple(counts[row]), last.get(row)) for row in rows}


def _strip(counts: tuple[int, ...], last: tuple[int, int] | None) -> HourlyCounts:
    return HourlyCounts(counts) if last is None else HourlyCounts(counts, from_us(last[0]), last[1])
