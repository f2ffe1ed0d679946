"""The evidence of many machines in three statements: a query a machine would cost more than the reading itself."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from sqlalchemy import BindParameter, Connection, bindparam, text

from forecasting.series import AlarmSeries
from service.database.dialect import integers
from service.machines.events import Evidence, GapRecord
from service.machines.models import Machine
from wire.timestamps import from_us

_THESE: BindParameter[int] = bindparam("machines", expanding=True)
# Written with the literal the partial index names, or neither database would use it.
WINDOWS = (
    "SELECT machine_id, at_us, code FROM events WHERE machine_id IN :machines AND at_us >= :start AND at_us < :end"
    " AND flag = 0 ORDER BY machine_id, at_us, code"
)
_WINDOWS = text(WINDOWS).bindparams(_THESE)
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


def evidence(connection: Connection, machines: Sequence[Machine], start_us: int, end_us: int) -> list[Evidence]:
    """Return what there is about each machine in ``[start, end)``, in the order of the machines."""
    rows = [machine.row_id for machine in machines]
    span = {"machines": rows, "start": start_us, "end": end_us}
    events = integers(connection, _WINDOWS, span, 3)
    owners, times, codes = (np.ascontiguousarray(column) for column in events.T)
    begins, ends = (np.searchsorted(owners, rows, side=side).tolist() for side in ("left", "right"))
    extents = {row: (first, last) for row, first, last in connection.execute(_ENDS, {"machines": rows})}
    gaps = defaultdict[int, list[GapRecord]](list)
    for row, first_us, last_us, *rest in connection.execute(_GAPS, span):
        gaps[row].append(GapRecord(from_us(first_us), from_us(last_us), *rest))
    return [
        Evidence(
            AlarmSeries(times[begin:end], codes[begin:end]),
            gaps.get(row, ()),
            *(None if at is None else from_us(at) for at in extents.get(row, (None, None))),
        )
        for row, begin, end in zip(rows, begins, ends, strict=True)
    ]
