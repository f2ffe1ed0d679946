"""Events whose number is taken by another event: a live one is stored under another number, else quarantined.

Numbers are used twice where an edge computer was restored from an image, or copied with its spool. Both events
happened, so both are stored.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from uuid import UUID, uuid5

from sqlalchemy import Connection, select

from service.database.dialect import stored_in
from service.database.event_row import EventRow
from service.database.tables import machines
from service.machines.event_write import EventWrite, QuarantineRow
from wire.acks import merge_ranges
from wire.identity import MachineId
from wire.timestamps import from_us, isoformat
from wire.topics import Channel, topic

_REUSED = UUID("b3c4a6de-5a0f-4f0e-9d39-0d3f5d8c7e21")  # namespace of the epochs of clashing events
_HIGHEST = 2**63 - 1
Body = tuple[int, int]  # code and moment
Clash = tuple[EventRow, Body]  # an event whose number is taken, and by what

_COLUMNS = ("epoch_id", "seq", "code", "at_us", "received_us")


def known_before(
    connection: Connection, recording: EventWrite, numbers: Mapping[tuple[int, UUID], int]
) -> tuple[list[Clash], tuple[EventRow, ...]]:
    """Return the rows whose identity is taken by an event with another body, and those that are new."""
    by_epoch: dict[int, list[EventRow]] = defaultdict(list)
    for row in recording.events:
        by_epoch[numbers[row.machine, row.epoch]].append(row)
    # Exactly these numbers: an agent chooses them, and millions may lie between the lowest and the highest.
    ranges = [
        (epoch_id, first, last)
        for epoch_id, group in by_epoch.items()
        for first, last in merge_ranges((row.seq, row.seq) for row in group)
    ]
    found = stored_in(connection, ranges, _COLUMNS, most=len(recording.events))
    kept = {(epoch_id, seq): (code, at_us, received_us) for epoch_id, seq, code, at_us, received_us in found}
    clashes: list[Clash] = []
    fresh: dict[tuple[int, int], EventRow] = {}  # by identity: a recording may hold an event twice
    for epoch_id, group in by_epoch.items():
        for row in group:
            code, at_us, received_us = kept[epoch_id, row.seq]
            if (code, at_us) != (row.code, row.at_us):
                clashes.append((row, (code, at_us)))
            elif received_us == recording.received_us:
                fresh[epoch_id, row.seq] = row
    return clashes, tuple(fresh.values())


def renumbered(clashes: Sequence[Clash]) -> list[EventRow]:
    """Return clashing events as they can be stored: in an epoch made from their own, numbered by their content.

    The same event gives the same number however often it is sent, so resending changes nothing.
    """
    return [row._replace(epoch=_reused_epoch(row.epoch), seq=_number(row)) for row, _ in clashes]


def _reused_epoch(epoch: UUID) -> UUID:
    return uuid5(_REUSED, str(epoch))


def _number(row: EventRow) -> int:
    content = f"{row.seq} {row.code} {row.at_us}".encode()
    return int.from_bytes(blake2b(content, digest_size=8).digest()) % _HIGHEST + 1


def conflicts(connection: Connection, clashes: Sequence[Clash]) -> list[QuarantineRow]:
    """Return what is kept of clashes, each with what it contradicts."""
    names = _names(connection, {row.machine for row, _ in clashes})
    return [_conflict(names[row.machine], row, kept) for row, kept in clashes]


def _names(connection: Connection, rows: set[int]) -> dict[int, MachineId]:
    query = select(machines.c.id, machines.c.site, machines.c.machine).where(machines.c.id.in_(rows))
    return {row: MachineId(site, machine) for row, site, machine in connection.execute(query)} if rows else {}


def _conflict(machine: MachineId, row: EventRow, kept: Body) -> QuarantineRow:
    event = f'{{"seq":{row.seq},"code":{row.code},"at":"{isoformat(from_us(row.at_us))}"}}'
    body = f'{{"epoch":"{row.epoch}","events":[{event}]}}'
    detail = f"event {row.seq} is stored already with code {kept[0]} at {from_us(kept[1]).isoformat()}"
    # Its own topic: two machines may contradict themselves with the same words, and neither may hide the other.
    return QuarantineRow(row.machine, topic(machine, Channel.EVENTS), "conflict", detail, body.encode())
