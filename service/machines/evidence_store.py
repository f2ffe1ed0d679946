"""The evidence of many machines in three queries, and counts per hour for charts."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from sqlalchemy import BindParameter, Connection, bindparam, text

from forecasting.series import AlarmSeries
from service.database.dialect import integers
from service.database.engine import Database
from service.machines.events import Evidence, GapRecord
from service.machines.models import HOUR, HourlyCounts, Machine
from wire.timestamps import from_us, to_us

_THESE: BindParameter[int] = bindparam("machines", expanding=True)
# Written with the literal the partial index names, or neither database would use it.
WINDOWS = (
    "SELECT machine_id, at_us, code FROM events WHERE machine_id IN :machines AND at_us >= :start AND at_us < :end"
    " AND flag = 0 ORDER BY machine_id, at_us, code"
)
_WINDOWS = text(WINDOWS).bindparams(_THESE)
_NEWEST_EVENTS = text(
    "SELECT at_us, code FROM events WHERE machine_id = :machine AND at_us >= :start AND at_us < :end AND flag = 0"
    " ORDER BY at_us DESC, code DESC LIMIT :most"
)
MAX_EVENTS = 100_000  # of one machine; at the usual rates this is years
# A look at both ends of each machine's part of the index; GROUP BY would read all of it.
_ENDS = text(
    "SELECT id, (SELECT min(at_us) FROM events WHERE machine_id = machines.id AND flag = 0),"
    " (SELECT max(at_us) FROM events WHERE machine_id = machines.id AND flag = 0)"
    " FROM machines WHERE id IN :machines"
).bindparams(_THESE)
_GAPS = text(
    "SELECT machine_id, first_us, last_us, first_seq, last_seq, reason FROM gaps"
    " WHERE machine_id IN :machines AND last_us >= :start AND first_us < :end ORDER BY first_us"
).bindparams(_THESE)


def evidence(
    connection: Connection, machines: Sequence[Machine], start_us: int, end_us: int, busy: dict[int, int]
) -> list[Evidence]:
    """Return what there is about each machine in ``[start, end)``, in the order of the machines.

    Of a machine with more than ``MAX_EVENTS`` only the newest are used, as if its history began with them.
    ``busy`` are the machines that may have more, with the length of span in which they had: these are read one by
    one. It is updated here.
    """
    rows = [machine.row_id for machine in machines]
    span = {"machines": rows, "start": start_us, "end": end_us}
    length = end_us - start_us
    apart = {row for row in rows if busy.get(row, length + 1) <= length}
    series = _series(connection, [row for row in rows if row not in apart], start_us, end_us)
    series |= {row: newest(connection, row, start_us, end_us, MAX_EVENTS + 1) for row in apart}
    for row, events in series.items():
        if len(events.times) > MAX_EVENTS // 2:
            busy[row] = min(length, busy.get(row, length))
        elif row in apart:
            busy.pop(row, None)
    extents = {row: (first, last) for row, first, last in connection.execute(_ENDS, {"machines": rows})}
    gaps = defaultdict[int, list[GapRecord]](list)
    for row, first_us, last_us, *rest in connection.execute(_GAPS, span):
        gaps[row].append(GapRecord(from_us(first_us), from_us(last_us), *rest))
    found = []
    for row in rows:
        first, last = extents.get(row, (None, None))
        kept = series[row]
        if len(kept.times) > MAX_EVENTS:
            kept = AlarmSeries(kept.times[-MAX_EVENTS:], kept.codes[-MAX_EVENTS:])
            first = int(kept.times[0])
        moments = (None if at is None else from_us(at) for at in (first, last))
        found.append(Evidence(kept, gaps.get(row, ()), *moments))
    return found


def newest(connection: Connection, machine: int, start_us: int, end_us: int, most: int) -> AlarmSeries:
    """Return the newest ``most`` trustworthy alarms of a machine in ``[start, end)``, in time order."""
    bounds = {"machine": machine, "start": start_us, "end": end_us, "most": most}
    table = integers(connection, _NEWEST_EVENTS, bounds, 2)[::-1]
    return AlarmSeries(np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1]))


def _series(connection: Connection, rows: list[int], start_us: int, end_us: int) -> dict[int, AlarmSeries]:
    if not rows:
        return {}
    events = integers(connection, _WINDOWS, {"machines": rows, "start": start_us, "end": end_us}, 3)
    owners, times, codes = (np.ascontiguousarray(column) for column in events.T)
    begins, ends = (np.searchsorted(owners, rows, side=side).tolist() for side in ("left", "right"))
    return {
        row: AlarmSeries(times[begin:end], codes[begin:end])
        for row, begin, end in zip(rows, begins, ends, strict=True)
    }


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
