"""The few statements that SQLite and PostgreSQL spell differently."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Table, TextClause
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.exc import DBAPIError

Rows = Sequence[tuple[Any, ...]]
# The database's own clock: hosts that share one need not agree on the time.
NOW_US = {
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
    "postgresql": "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)",
}
# A few sizes, so that the driver keeps their prepared statements; seven columns times 500 stay below every limit.
_ROWS_A_STATEMENT = (500, 100, 20, 5, 1)


def now_us(connection: Connection) -> int:
    """Return the time by the database's own clock."""
    return int(connection.exec_driver_sql(f"SELECT {NOW_US[connection.dialect.name]}").scalar_one())


def upsert(
    connection: Connection, table: Table, row: dict[str, Any], *, keys: list[str], once: list[str] | None = None
) -> Any:
    """Return a statement that inserts ``row`` or, where its keys exist, updates the rest, except ``once``."""
    insert = _insert_of(connection)
    rest = {name: value for name, value in row.items() if name not in (*keys, *(once or ()))}
    return insert(table).values(**row).on_conflict_do_update(index_elements=keys, set_=rest)


def write_alone(connection: Connection, table: Table) -> None:
    """Let nobody else write to a table until the end of the transaction; they may go on reading.

    For a few rows that are changed rarely, and only in view of all the others.
    """
    if connection.dialect.name != "sqlite":  # there every write transaction is alone already
        connection.exec_driver_sql(f"LOCK TABLE {table.name} IN SHARE ROW EXCLUSIVE MODE")


def insert_new(connection: Connection, table: Table, row: dict[str, Any]) -> Any:
    """Return a statement that inserts ``row`` unless somebody else has, at this very moment or before."""
    return _insert_of(connection)(table).values(**row).on_conflict_do_nothing()


def _insert_of(connection: Connection) -> Any:
    """Return the insert that knows of conflicts; PostgreSQL's is loaded only where it is spoken."""
    if connection.dialect.name == "sqlite":
        return sqlite_insert
    from sqlalchemy.dialects.postgresql import insert  # noqa: PLC0415

    return insert


def insert_rows(
    connection: Connection, table: Table, columns: tuple[str, ...], rows: Rows, *, on_conflict: str = "DO NOTHING"
) -> int:
    """Insert rows given as tuples and return how many went in; ``on_conflict`` says what happens to the others.

    Straight to the driver, many rows a statement: SQLAlchemy looks at every row, and the sqlite3 module lets
    go of the interpreter's lock for every statement, which costs most when other threads wait for it.
    """
    done = inserted = 0
    for size in _ROWS_A_STATEMENT:
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
    """Store rows in PostgreSQL, none of which is there yet, by COPY: the fastest way for many, a good one for few.

    The driver's errors come as SQLAlchemy's do, so that nobody need know of it.
    """
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


_ROWS = 5_000  # that are objects at the same time


def integers(connection: Connection, query: TextClause, values: dict[str, Any], columns: int) -> NDArray[np.int64]:
    """Return an answer of whole numbers as an array with a row for each row."""
    found = connection.execute(query, values, execution_options={"stream_results": True, "max_row_buffer": _ROWS})
    pieces = [np.fromiter(chain.from_iterable(rows), dtype=np.int64) for rows in found.partitions(_ROWS)]
    table = np.concatenate(pieces) if pieces else np.array([], dtype=np.int64)
    return table.reshape(-1, columns)
