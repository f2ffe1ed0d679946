"""Who may still be stored: checked inside the transaction that stores, so that nothing follows an erasure."""

from collections.abc import Collection

from sqlalchemy import Connection

_MACHINES_A_STATEMENT = 900  # SQLite takes at least 999 values in one statement
_SQLITE = "SELECT id FROM machines WHERE id IN ({marks}) AND state <> 'retired'"
# Who is retired or erased takes its row for itself; a commit that has seen it here ends before that.
_POSTGRESQL = "SELECT id FROM machines WHERE id = ANY(%s) AND state <> 'retired' ORDER BY id FOR KEY SHARE"


def absent(connection: Connection, machines: Collection[int]) -> set[int]:
    """Return which of these machines are retired or erased; the others stay until the transaction ends.

    Straight to the driver: every commit asks this.
    """
    wanted = sorted(machines)
    if not wanted:
        return set()
    if connection.dialect.name != "sqlite":
        return set(wanted).difference(connection.exec_driver_sql(_POSTGRESQL, (wanted,)).scalars())
    missing = set(wanted)
    for start in range(0, len(wanted), _MACHINES_A_STATEMENT):
        some = tuple(wanted[start : start + _MACHINES_A_STATEMENT])
        statement = _SQLITE.format(marks=", ".join("?" * len(some)))
        missing.difference_update(connection.exec_driver_sql(statement, some).scalars())
    return missing
