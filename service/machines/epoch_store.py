"""Ids of epochs, given up to a limit per machine, and sequence numbers that were used twice."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from itertools import chain
from uuid import UUID, uuid5

from sqlalchemy import Connection, delete, exists, func, select

from service.database.dialect import insert_new, stored_in
from service.database.event_row import EventRow, kind_of
from service.database.tables import epochs, events, gaps, machines
from service.machines.events import EventWrite, QuarantineRow
from wire.acks import merge_ranges
from wire.events import TransitionKind
from wire.identity import MachineId
from wire.timestamps import from_us, isoformat
from wire.topics import Channel, topic

Key = tuple[int, UUID]  # a machine's row and its epoch
_KEYS_A_STATEMENT = 400  # two values each; SQLite takes at least 999 in one statement
_SQLITE = "SELECT id, machine_id, epoch FROM epochs WHERE (machine_id, epoch) IN (VALUES {marks})"
_POSTGRESQL = (
    "SELECT e.id, e.machine_id, e.epoch FROM unnest(CAST(%s AS int[]), CAST(%s AS uuid[]))"
    " AS r (machine_id, epoch) JOIN epochs e ON e.machine_id = r.machine_id AND e.epoch = r.epoch"
)


def known_numbers(connection: Connection, keys: Collection[Key]) -> dict[Key, int]:
    """Return the numbers of those epochs that have one, straight from the driver.

    They are looked up in every commit: to remember them would take memory without end, and they may be given back.
    """
    if not keys:
        return {}
    if connection.dialect.name != "sqlite":
        values = tuple(list(column) for column in zip(*keys, strict=True))
        rows = connection.exec_driver_sql(_POSTGRESQL, values)
        return {(machine, epoch): number for number, machine, epoch in rows}
    wanted = {(machine, epoch.hex): (machine, epoch) for machine, epoch in keys}
    names, found = list(wanted), dict[Key, int]()
    for start in range(0, len(names), _KEYS_A_STATEMENT):
        some = names[start : start + _KEYS_A_STATEMENT]
        sql = _SQLITE.format(marks=", ".join(["(?, ?)"] * len(some)))
        for number, machine, epoch in connection.exec_driver_sql(sql, tuple(chain.from_iterable(some))):
            found[wanted[machine, epoch]] = number
    return found


def give_numbers(connection: Connection, keys: Collection[Key], *, most: int) -> dict[Key, int]:
    """Return the numbers of epochs, giving one to new ones unless their machine has ``most``."""
    found = known_numbers(connection, keys)
    kept: dict[int, int] = {}
    for key in sorted(set(keys) - found.keys()):
        machine, epoch = key
        if machine not in kept:
            count = select(func.count()).where(epochs.c.machine_id == machine)
            kept[machine] = connection.execute(count).scalar_one()
        if kept[machine] >= most:
            continue
        kept[machine] += 1
        nothing_yet = None if connection.dialect.name == "sqlite" else 0  # SQLite keeps no heights
        row = {"machine_id": machine, "epoch": epoch, "last_seq": nothing_yet}
        connection.execute(insert_new(connection, epochs, row))
        query = select(epochs.c.id).where(epochs.c.machine_id == machine, epochs.c.epoch == epoch)
        found[key] = connection.execute(query).scalar_one()
    return found


def crowded(connection: Connection, above: int) -> list[int]:
    """Return the machines that have more than so many epochs."""
    query = select(epochs.c.machine_id).group_by(epochs.c.machine_id).having(func.count() > above)
    return list(connection.execute(query.order_by(epochs.c.machine_id)).scalars())


def forget_empty(connection: Connection, machine: int) -> int:
    """Delete a machine's epochs of which neither an event nor a gap is stored any more; return how many."""
    empty = (
        ~exists().where(events.c.epoch_id == epochs.c.id),
        ~exists().where(gaps.c.epoch_id == epochs.c.id),
    )
    query = select(epochs.c.id).where(epochs.c.machine_id == machine, *empty).order_by(epochs.c.id)
    # First held, then looked at again: a commit that held one of them before may just have stored an event.
    held = connection.execute(query.with_for_update(of=epochs)).scalars().all()
    gone = 0
    for start in range(0, len(held), _KEYS_A_STATEMENT):
        some = held[start : start + _KEYS_A_STATEMENT]
        gone += connection.execute(delete(epochs).where(epochs.c.id.in_(some), *empty)).rowcount
    return gone


_REUSED = UUID("b3c4a6de-5a0f-4f0e-9d39-0d3f5d8c7e21")  # namespace of the epochs of clashing events
_HIGHEST = 2**63 - 1
Body = tuple[int, int, TransitionKind | None]  # code, moment and kind
Clash = tuple[EventRow, Body]  # an event whose number is taken, and by what

_COLUMNS = ("epoch_id", "seq", "code", "at_us", "flag", "received_us")


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
    kept = {
        (epoch_id, seq): ((code, at_us, kind_of(flag)), received_us)
        for epoch_id, seq, code, at_us, flag, received_us in found
    }
    clashes: list[Clash] = []
    fresh: dict[tuple[int, int], EventRow] = {}  # by identity: a recording may hold an event twice
    for epoch_id, group in by_epoch.items():
        for row in group:
            body, received_us = kept[epoch_id, row.seq]
            if body != (row.code, row.at_us, kind_of(row.flag)):
                clashes.append((row, body))
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
    kind = kind_of(row.flag)
    content = f"{row.seq} {row.code} {row.at_us}{'' if kind is None else f' {kind}'}".encode()
    return int.from_bytes(blake2b(content, digest_size=8).digest()) % _HIGHEST + 1


def conflicts(connection: Connection, clashes: Sequence[Clash]) -> list[QuarantineRow]:
    """Return what is kept of clashes, each with what it contradicts."""
    names = _names(connection, {row.machine for row, _ in clashes})
    return [_conflict(names[row.machine], row, kept) for row, kept in clashes]


def _names(connection: Connection, rows: set[int]) -> dict[int, MachineId]:
    query = select(machines.c.id, machines.c.site, machines.c.machine).where(machines.c.id.in_(rows))
    return {row: MachineId(site, machine) for row, site, machine in connection.execute(query)} if rows else {}


def _conflict(machine: MachineId, row: EventRow, kept: Body) -> QuarantineRow:
    kind = kind_of(row.flag)
    more = "" if kind is None else f',"kind":"{kind}"'
    event = f'{{"seq":{row.seq},"code":{row.code},"at":"{isoformat(from_us(row.at_us))}"{more}}}'
    body = f'{{"epoch":"{row.epoch}","{"events" if kind is None else "transitions"}":[{event}]}}'
    detail = f"event {row.seq} is stored already with code {kept[0]} at {from_us(kept[1]).isoformat()}"
    # Its own topic: two machines may contradict themselves with the same words, and neither may hide the other.
    return QuarantineRow(row.machine, topic(machine, Channel.EVENTS), "conflict", detail, body.encode())
