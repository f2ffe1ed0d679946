"""Statements that differ between SQLite and PostgreSQL."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Table, TextClause, text
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.exc import DBAPIError

Rows = Sequence[tuple[Any, ...]]
# The database's clock, because the clocks of hosts may differ.
NOW_US = {
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
    "postgresql": "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)",
}
# Few sizes, so that the driver caches the statements; 500 rows of seven columns are below every limit.
_ROWS_PER_STATEMENT = (500, 100, 20, 5, 1)
_ROWS_PER_FETCH = 5_000
Range = tuple[int, int, int]  # epoch id, first and last sequence number

_RANGES_PER_STATEMENT = 300  # three values each; SQLite allows at least 999
_POSTGRESQL_RANGES = (
    "SELECT {columns} FROM unnest(CAST(:epochs AS int[]), CAST(:firsts AS bigint[]), CAST(:lasts AS bigint[]))"
    " AS r (epoch_id, first_seq, last_seq) CROSS JOIN LATERAL (SELECT * FROM events WHERE"
    " events.epoch_id = r.epoch_id AND events.seq >= r.first_seq AND events.seq <= r.last_seq LIMIT :most) AS e"
    " LIMIT :most"
)
# SQLite keeps the order of tables in a CROSS JOIN, so each range is one index lookup.
_SQLITE_RANGES = (
    "WITH r (epoch_id, first_seq, last_seq) AS (VALUES {values}) SELECT {columns} FROM r CROSS JOIN events AS e"
    " ON e.epoch_id = r.epoch_id AND e.seq >= r.first_seq AND e.seq <= r.last_seq LIMIT ?"
)


def now_us(connection: Connection) -> int:
    """Return the time of the database's clock."""
    return int(connection.exec_driver_sql(f"SELECT {NOW_US[connection.dialect.name]}").scalar_one())


def upsert(
    connection: Connection, table: Table, row: dict[str, Any], *, keys: list[str], once: list[str] | None = None
) -> Any:
    """Return a statement that inserts a row or updates the existing one, except its columns ``once``."""
    insert = _insert_of(connection)
    rest = {name: value for name, value in row.items() if name not in (*keys, *(once or ()))}
    return insert(table).values(**row).on_conflict_do_update(index_elements=keys, set_=rest)


def write_alone(connection: Connection, table: Table) -> None:
    """Lock a table against other writers until the end of the transaction; for small, rarely changed tables."""
    if connection.dialect.name != "sqlite":  # has one writer at a time anyway
        connection.exec_driver_sql(f"LOCK TABLE {table.name} IN SHARE ROW EXCLUSIVE MODE")


def insert_new(connection: Connection, table: Table, row: dict[str, Any]) -> Any:
    """Return a statement that inserts a row unless it exists."""
    return _insert_of(connection)(table).values(**row).on_conflict_do_nothing()


def _insert_of(connection: Connection) -> Any:
    if connection.dialect.name == "sqlite":
        return sqlite_insert
    from sqlalchemy.dialects.postgresql import insert  # noqa: PLC0415

    return insert


def insert_rows(
    connection: Connection, table: Table, columns: tuple[str, ...], rows: Rows, *, on_conflict: str = "DO NOTHING"
) -> int:
    """Insert rows given as tuples and return how many were inserted.

    Uses the driver with many rows per statement: SQLAlchemy processes every row, and the sqlite3 module releases
    the GIL for every statement, which is expensive when other threads wait for it.
    """
    done = inserted = 0
    for size in _ROWS_PER_STATEMENT:
        sql = _insert_sql(connection.dialect.name, table.name, columns, size, on_conflict)
        while len(rows) - done >= size:
            values = tuple(chain.from_iterable(rows[done : done + size]))
            inserted += connection.exec_driver_sql(sql, values).rowcount
            done += size
    return inserted


@lru_cache(maxsize=64)
def _insert_sql(dialect: str, table: str, columns: tuple[str, ...], size: int, on_conflict: str) -> str:
    mark = "?" if dialect == "sqlite" else "%s"
    one = f"({', '.join([mark] * len(columns))})"
    values = ", ".join([one] * size)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {values} ON CONFLICT {on_conflict}"  # noqa: S608 - our names


def copy_rows(connection: Connection, table: Table, columns: tuple[str, ...], rows: Rows) -> None:
    """Insert new rows into PostgreSQL with COPY; driver errors are raised as SQLAlchemy errors."""
    if not rows:
        return
    sql = f"COPY {table.name} ({', '.join(columns)}) FROM STDIN"
    errors = connection.dialect.loaded_dbapi.Error
    try:
        with connection.connection.cursor() as cursor, cursor.copy(sql) as copy:  # type: ignore[attr-defined]
            for row in rows:
                copy.write_row(row)
    except errors as error:
        raise DBAPIError.instance(sql, None, error, errors) from error


def integers(connection: Connection, query: TextClause, values: dict[str, Any], columns: int) -> NDArray[np.int64]:
    """Return an integer result as an array with one row per result row."""
    found = connection.execute(
        query, values, execution_options={"stream_results": True, "max_row_buffer": _ROWS_PER_FETCH}
    )
    pieces = [np.fromiter(chain.from_iterable(rows), dtype=np.int64) for rows in found.partitions(_ROWS_PER_FETCH)]
    table = np.concatenate(pieces) if pieces else np.array([], dtype=np.int64)
    return table.reshape(-1, columns)


def stored_in(
    connection: Connection, ranges: Sequence[Range], columns: Sequence[str], *, most: int
) -> Iterator[tuple[Any, ...]]:
    """Yield columns of at most ``most`` events in ranges of sequence numbers."""
    names = ", ".join(f"e.{column}" for column in columns)
    for start in range(0, len(ranges), _RANGES_PER_STATEMENT):
        if most <= 0:
            return
        for row in _rows_in(connection, ranges[start : start + _RANGES_PER_STATEMENT], names, most):
            most -= 1
            yield tuple(row)


def _rows_in(connection: Connection, ranges: Sequence[Range], names: str, most: int) -> Sequence[Any]:
    if connection.dialect.name == "sqlite":
        sql = _SQLITE_RANGES.format(values=", ".join(["(?, ?, ?)"] * len(ranges)), columns=names)
        return connection.exec_driver_sql(sql, (*chain.from_iterable(ranges), most)).fetchall()
    epochs, firsts, lasts = (list(column) for column in zip(*ranges, strict=True))
    values = {"epochs": epochs, "firsts": firsts, "lasts": lasts, "most": most}
    return connection.execute(text(_POSTGRESQL_RANGES.format(columns=names)), values).fetchall()
