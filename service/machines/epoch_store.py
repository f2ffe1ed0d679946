"""The short numbers of epochs: given at the first appearance, up to a limit for each machine, and given back."""

from collections.abc import Collection
from itertools import chain
from uuid import UUID

from sqlalchemy import Connection, delete, exists, func, select

from service.database.dialect import insert_new
from service.database.tables import epochs, events, gaps

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
