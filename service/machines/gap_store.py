"""Gaps: written up to a limit for each machine, and shown with how many of their events are really missing."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import Connection, Row, func, select, tuple_, update

from service.database.dialect import insert_rows, stored_in
from service.database.tables import gaps
from service.machines.events import GapRecord, GapRow
from service.machines.models import ExcessKind, Machine
from wire.acks import merge_ranges
from wire.rest.gaps import GapView
from wire.timestamps import from_us

_COLUMNS = ("epoch_id", "first_seq", "last_seq", "machine_id", "first_us", "last_us", "reason", "received_us")
# A gap that goes on is reported again, longer; a shorter one is older and does not replace it.
_A_GAP_GROWS = (
    "(epoch_id, first_seq) DO UPDATE SET last_seq = excluded.last_seq,"
    " first_us = CASE WHEN excluded.first_us < gaps.first_us THEN excluded.first_us ELSE gaps.first_us END,"
    " last_us = CASE WHEN excluded.last_us > gaps.last_us THEN excluded.last_us ELSE gaps.last_us END,"
    " reason = excluded.reason, received_us = excluded.received_us"
    " WHERE excluded.last_seq >= gaps.last_seq"
)
_KEYS_A_STATEMENT = 400
# Few events of a real gap arrive: those that were on their way when the agent dropped them.
_MOST_ARRIVED = 20_000


def insert_gaps(
    connection: Connection,
    reported: Sequence[GapRow],
    numbers: Mapping[tuple[int, UUID], int],
    received_us: int,
    *,
    most: int,
) -> Counter[tuple[int, ExcessKind]]:
    """Store gaps inside a transaction, ``most`` for each machine; return how many of each were left out.

    The time of a gap that is left out is not forgotten: the newest gap that is kept is made to cover it.
    """
    left_out: Counter[tuple[int, ExcessKind]] = Counter()
    by_machine: dict[int, list[GapRow]] = defaultdict(list)
    for gap in reported:
        by_machine[gap.machine].append(gap)
    for machine, rows in sorted(by_machine.items()):
        kept = connection.execute(select(func.count()).where(gaps.c.machine_id == machine)).scalar_one()
        known = _known(connection, rows, numbers) if kept + len(rows) > most else set()
        excess: list[GapRow] = []
        for gap in rows:
            key = (numbers[gap.machine, gap.epoch], gap.first_seq)
            if kept >= most and key not in known:
                excess.append(gap)
                continue
            values = (key[0], *gap[2:4], gap.machine, *gap[4:], received_us)
            insert_rows(connection, gaps, _COLUMNS, [values], on_conflict=_A_GAP_GROWS)
            kept += key not in known
            known.add(key)
        if excess:
            _cover(connection, machine, excess)
            left_out[machine, ExcessKind.GAPS] += len(excess)
    return left_out


def _known(
    connection: Connection, rows: Sequence[GapRow], numbers: Mapping[tuple[int, UUID], int]
) -> set[tuple[int, int]]:
    """Return which of the gaps are stored already and may grow."""
    keys = sorted({(numbers[gap.machine, gap.epoch], gap.first_seq) for gap in rows})
    found: set[tuple[int, int]] = set()
    for start in range(0, len(keys), _KEYS_A_STATEMENT):
        some = keys[start : start + _KEYS_A_STATEMENT]
        query = select(gaps.c.epoch_id, gaps.c.first_seq).where(
            tuple_(gaps.c.epoch_id, gaps.c.first_seq).in_(some)
        )
        found |= {(epoch, first) for epoch, first in connection.execute(query)}
    return found


def _cover(connection: Connection, machine: int, excess: Sequence[GapRow]) -> None:
    """Extend the newest gap of a machine over the time of others, which count as unobserved too."""
    newest = connection.execute(
        select(gaps.c.epoch_id, gaps.c.first_seq, gaps.c.first_us, gaps.c.last_us)
        .where(gaps.c.machine_id == machine)
        .order_by(gaps.c.last_us.desc(), gaps.c.epoch_id, gaps.c.first_seq)
        .limit(1)
    ).one_or_none()
    if newest is None:
        return
    connection.execute(
        update(gaps)
        .where(gaps.c.epoch_id == newest.epoch_id, gaps.c.first_seq == newest.first_seq)
        .values(
            first_us=min(newest.first_us, *(gap.first_us for gap in excess)),
            last_us=max(newest.last_us, *(gap.last_us for gap in excess)),
        )
    )


def gaps_between(connection: Connection, machine: Machine, start_us: int, end_us: int) -> list[GapRecord]:
    """Return the gaps that touch ``[start, end)``, in time order."""
    query = (
        select(gaps)
        .where(gaps.c.machine_id == machine.row_id, gaps.c.last_us >= start_us, gaps.c.first_us < end_us)
        .order_by(gaps.c.first_us)
    )
    return [
        GapRecord(from_us(row.first_us), from_us(row.last_us), row.first_seq, row.last_seq, row.reason)
        for row in connection.execute(query)
    ]


def newest_gaps(connection: Connection, machine: Machine, start_us: int, end_us: int, most: int) -> list[GapView]:
    """Return the newest ``most`` gaps that touch ``[start, end)``, with how many numbers are really missing.

    Overlapping gaps are looked at together, and no more than a bounded number of events is read for all of them.
    """
    query = (
        select(gaps)
        .where(gaps.c.machine_id == machine.row_id, gaps.c.last_us >= start_us, gaps.c.first_us < end_us)
        .order_by(gaps.c.first_us.desc(), gaps.c.first_seq.desc())
        .limit(most)
    )
    rows = connection.execute(query).fetchall()[::-1]
    spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for row in rows:
        spans[row.epoch_id].append((row.first_seq, row.last_seq))
    ranges = [(epoch, first, last) for epoch, each in spans.items() for first, last in merge_ranges(each)]
    arrived: dict[int, list[int]] = defaultdict(list)
    for epoch, seq in stored_in(connection, ranges, ("epoch_id", "seq"), most=_MOST_ARRIVED):
        arrived[epoch].append(seq)
    numbers = {epoch: np.sort(np.array(seqs, dtype=np.int64)) for epoch, seqs in arrived.items()}
    nothing = np.array([], dtype=np.int64)
    return [
        GapView(
            first_at=from_us(row.first_us),
            last_at=from_us(row.last_us),
            first_seq=row.first_seq,
            last_seq=row.last_seq,
            dropped=row.last_seq - row.first_seq + 1 - _within(numbers.get(row.epoch_id, nothing), row),
            reason=row.reason,
        )
        for row in rows
    ]


def _within(arrived: "np.ndarray[Any, np.dtype[np.int64]]", gap: Row[Any]) -> int:
    first, end = np.searchsorted(arrived, gap.first_seq), np.searchsorted(arrived, gap.last_seq, "right")
    return int(end - first)
