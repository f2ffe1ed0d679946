"""Stored events looked up by ranges of their numbers: only what was asked for is read, never the span between."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from sqlalchemy import Connection, text

Range = tuple[int, int, int]  # the number of an epoch, the first and the last sequence number

_RANGES_A_STATEMENT = 300  # three values each; SQLite takes at least 999 in one statement
_POSTGRESQL = (
    "SELECT {columns} FROM unnest(CAST(:epochs AS int[]), CAST(:firsts AS bigint[]), CAST(:lasts AS bigint[]))"
    " AS r (epoch_id, first_seq, last_seq) CROSS JOIN LATERAL (SELECT * FROM events WHERE"
    " events.epoch_id = r.epoch_id AND events.seq >= r.first_seq AND events.seq <= r.last_seq LIMIT :most) AS e"
    " LIMIT :most"
)
# SQLite takes the tables of a CROSS JOIN in the order given, so that each range is one step into the key.
_SQLITE = (
    "WITH r (epoch_id, first_seq, last_seq) AS (VALUES {values}) SELECT {columns} FROM r CROSS JOIN events AS e"
    " ON e.epoch_id = r.epoch_id AND e.seq >= r.first_seq AND e.seq <= r.last_seq LIMIT ?"
)


def stored_in(
    connection: Connection, ranges: Sequence[Range], columns: Sequence[str], *, most: int
) -> Iterator[tuple[Any, ...]]:
    """Yield the columns of the events whose numbers lie in the ranges, ``most`` at the most."""
    names = ", ".join(f"e.{column}" for column in columns)
    for start in range(0, len(ranges), _RANGES_A_STATEMENT):
        if most <= 0:
            return
        for row in _rows(connection, ranges[start : start + _RANGES_A_STATEMENT], names, most):
            most -= 1
            yield tuple(row)


def _rows(connection: Connection, ranges: Sequence[Range], names: str, most: int) -> Sequence[Any]:
    if connection.dialect.name == "sqlite":
        sql = _SQLITE.format(values=", ".join(["(?, ?, ?)"] * len(ranges)), columns=names)
        return connection.exec_driver_sql(sql, (*chain.from_iterable(ranges), most)).fetchall()
    epochs, firsts, lasts = (list(column) for column in zip(*ranges, strict=True))
    values = {"epochs": epochs, "firsts": firsts, "lasts": lasts, "most": most}
    return connection.execute(text(_POSTGRESQL.format(columns=names)), values).fetchall()
