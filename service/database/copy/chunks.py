"""Rows in pieces, by primary key: read from where the last piece ended, written in one go."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, LargeBinary, Select, Table, insert, literal, select, tuple_
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from service.database.dialect import Rows, copy_rows
from service.database.event_row import IN_TIME
from service.database.partitions import make, months_of
from service.database.tables import events, metadata, weights
from service.errors import InputRejected

# In an order in which nothing refers to what is not there yet. Weights are rows or files, see weights.py.
TABLES = tuple(table for table in metadata.sorted_tables if table is not weights)
_ROWS = 10_000
_ROWS_WITH_BODIES = 250  # the windows of an exam take a megabyte


def chunks(connection: Connection, table: Table, after: tuple[Any, ...] | None = None) -> Iterator[Rows]:
    """Yield a table's rows behind a key, by their keys, as the values that the schema's types give."""
    key = tuple(table.primary_key)
    query = _select(table).order_by(*key)
    if after is not None:
        last = (literal(value, column.type) for value, column in zip(after, key, strict=True))
        query = query.where(tuple_(*key) > tuple_(*last))
    return _streamed(connection, table, query)


def all_rows(connection: Connection, table: Table) -> Iterator[Rows]:
    """Yield a table's rows in whichever order is the quickest."""
    return _streamed(connection, table, _select(table))


def key_of(table: Table, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the primary key of a row that was read here."""
    names = table.columns.keys()
    return tuple(row[names.index(column.name)] for column in table.primary_key)


def write(connection: Connection, table: Table, rows: Rows) -> None:
    """Write rows that were read here; one that is there already is an error."""
    names = tuple(table.columns.keys())
    if connection.dialect.name == "sqlite":
        connection.execute(insert(table), [dict(zip(names, row, strict=True)) for row in rows])
        return
    _prepare(connection, table, rows)
    try:
        copy_rows(connection, table, names, rows)
    except (DataError, IntegrityError) as error:
        raise InputRejected(
            f"PostgreSQL does not take one of {len(rows)} rows of {table.name} from {key_of(table, rows[0])} on: "
            f"{_reason(error)}. Mend it in the original, then give the same command again."
        ) from error


def _select(table: Table) -> Select[Any]:
    return select(*table.columns)


def _streamed(connection: Connection, table: Table, query: Select[Any]) -> Iterator[Rows]:
    """Hold one piece in memory and no more, on either database."""
    has_bodies = any(isinstance(column.type, LargeBinary) for column in table.columns)
    size = _ROWS_WITH_BODIES if has_bodies else _ROWS
    with connection.execute(query.execution_options(yield_per=size)) as result:
        for piece in result.partitions():
            yield [tuple(row) for row in piece]


def _prepare(connection: Connection, table: Table, rows: Rows) -> None:
    """Make the tables of the months that events need."""
    if table is events:
        at_us, flag = (table.columns.keys().index(name) for name in ("at_us", "flag"))
        make(connection, months_of(row[at_us] for row in rows if row[flag] == IN_TIME))


def _reason(error: DBAPIError) -> str:
    """Return PostgreSQL's own first words, without the row that it may cite below them."""
    return str(error.orig).partition("\n")[0].rstrip(".")
