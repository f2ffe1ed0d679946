"""Events into PostgreSQL: each number of an epoch once, over all months and with any number of ingesters at once.

No key can promise that, because a partitioned table is unique only together with what it is split by. So a commit
holds its epochs to itself, in the order of their numbers, so that two never wait for each other. It knows the
highest number that was ever stored of each: what is above is new, the rest is looked up.
"""

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from sqlalchemy import Connection, text

from service.database.dialect import Rows, copy_rows
from service.database.event_row import EventRow, kind_of
from service.database.tables import events
from service.errors import Unavailable
from service.machines.epoch_store import Body, Clash
from service.machines.events import EventWrite, WriteResult
from wire.acks import merge_ranges

_COLUMNS = ("epoch_id", "seq", "machine_id", "code", "at_us", "received_us", "flag")
_HOLD = text("SELECT id, last_seq FROM epochs WHERE id = ANY(CAST(:epochs AS int[])) ORDER BY id FOR UPDATE")
# Of an epoch that came from SQLite, or from before there were several writers, the highest number is not kept yet.
_HIGHEST = text("SELECT max(seq) FROM events WHERE epoch_id = :epoch")
_STORED = text(
    "SELECT e.epoch_id, e.seq, e.code, e.at_us, e.flag"
    " FROM unnest(CAST(:epochs AS int[]), CAST(:firsts AS bigint[]),"
    " CAST(:lasts AS bigint[])) AS r (epoch_id, first, last)"
    " JOIN events e ON e.epoch_id = r.epoch_id AND e.seq >= r.first AND e.seq <= r.last"
)
_RAISE = text(
    "UPDATE epochs SET last_seq = r.last FROM unnest(CAST(:epochs AS int[]), CAST(:lasts AS bigint[]))"
    " AS r (epoch_id, last) WHERE id = r.epoch_id"
)


def lock_epochs(connection: Connection, epochs: Collection[int]) -> dict[int, int]:
    """Keep epochs from every other commit until the end of this one; return the highest number of each, or 0."""
    if not epochs:
        return {}
    rows = connection.execute(_HOLD, {"epochs": sorted(epochs)}).all()
    if len(rows) < len(set(epochs)):
        raise Unavailable("An epoch without events was deleted at this very moment; it is made again.")
    return {
        epoch: connection.execute(_HIGHEST, {"epoch": epoch}).scalar() or 0 if last is None else last
        for epoch, last in rows
    }


def insert_new(
    connection: Connection, recording: EventWrite, numbers: Mapping[tuple[int, UUID], int], highest: dict[int, int]
) -> tuple[WriteResult, list[Clash]]:
    """Store what is new of the epochs that are held; ``highest`` is what :func:`hold` has returned."""
    epochs = [numbers[row.machine, row.epoch] for row in recording.events]
    known = _stored(connection, recording.events, epochs, highest)
    fresh: list[EventRow] = []
    rows: list[tuple[int, ...]] = []
    clashes: list[Clash] = []
    for epoch, event in zip(epochs, recording.events, strict=True):
        machine, _, seq, code, at_us, flag = event
        body = (code, at_us, kind_of(flag))
        kept = known.setdefault((epoch, seq), body)
        if kept is body:  # neither the table nor this write had it
            fresh.append(event)
            rows.append((epoch, seq, machine, code, at_us, recording.received_us, flag))
        elif kept != body:
            clashes.append((event, kept))
    copy_rows(connection, events, _COLUMNS, rows)
    _advance_high_water(connection, rows, highest)
    if len(fresh) == len(epochs):
        return WriteResult(len(fresh), 0, 0), []
    duplicates = len(epochs) - len(fresh) - len(clashes)
    return WriteResult(len(fresh), duplicates, len(clashes), tuple(fresh)), clashes


def _stored(
    connection: Connection, rows: Sequence[EventRow], epochs: Sequence[int], highest: Mapping[int, int]
) -> dict[tuple[int, int], Body]:
    """Return what is stored under the numbers that are not above all that were; usually none of them is."""
    doubtful: dict[int, list[tuple[int, int]]] = {}
    for epoch, (_, _, seq, _, _, _) in zip(epochs, rows, strict=True):
        if seq <= highest[epoch]:
            doubtful.setdefault(epoch, []).append((seq, seq))
    spans = [(epoch, first, last) for epoch, seqs in doubtful.items() for first, last in merge_ranges(seqs)]
    if not spans:
        return {}
    values = dict(zip(("epochs", "firsts", "lasts"), map(list, zip(*spans, strict=True)), strict=True))
    found = connection.execute(_STORED, values)
    return {(epoch, seq): (code, at_us, kind_of(flag)) for epoch, seq, code, at_us, flag in found}


def _advance_high_water(connection: Connection, rows: Rows, highest: Mapping[int, int]) -> None:
    raised = dict(highest)
    for epoch, seq, *_ in rows:
        raised[epoch] = max(raised[epoch], seq)
    changed = {epoch: last for epoch, last in raised.items() if last != highest[epoch]}
    if changed:
        connection.execute(_RAISE, {"epochs": list(changed), "lasts": list(changed.values())})
