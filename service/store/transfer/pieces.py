"""Rows in pieces, by primary key: read from where the last piece ended, written in one go."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import psycopg
from psycopg import sql
from sqlalchemy import Connection, LargeBinary, Select, Table, insert, literal, select, tuple_

from service.errors import InputRejected, Unavailable

Rows = Sequence[tuple[Any, ...]]
_ROWS = 10_000
_ROWS_WITH_BODIES = 250  # the windows of an exam take a megabyte


def pieces(connection: Connection, table: Table, after: tuple[Any, ...] | None = None) -> Iterator[Rows]:
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
    if connection.dialect.name == "postgresql":
        _copy(cast("psycopg.Connection[Any]", connection.connection.driver_connection), table, rows)
    else:
        names = table.columns.keys()
        connection.execute(insert(table), [dict(zip(names, row, strict=True)) for row in rows])


def _select(table: Table) -> Select[Any]:
    return select(*table.columns)


def _streamed(connection: Connection, table: Table, query: Select[Any]) -> Iterator[Rows]:
    """Hold one piece in memory and no more, on either database."""
    has_bodies = any(isinstance(column.type, LargeBinary) for column in table.columns)
    size = _ROWS_WITH_BODIES if has_bodies else _ROWS
    with connection.execute(query.execution_options(yield_per=size)) as result:
        for piece in result.partitions():
            yield [tuple(row) for row in piece]


def _copy(driver: "psycopg.Connection[Any]", table: Table, rows: Rows) -> None:
    columns = sql.SQL(", ").join(sql.Identifier(column.name) for column in table.columns)
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table.name), columns)
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)
    except psycopg.OperationalError as error:
        raise Unavailable(f"The connection to the database was lost: {_reason(error)}.") from error
    except psycopg.Error as error:
        raise InputRejected(
            f"PostgreSQL does not take one of {len(rows)} rows of {table.name} from {key_of(table, rows[0])} on: "
            f"{_reason(error)}. Mend it in the original, then give the same command again."
        ) from error


def _reason(error: psycopg.Error) -> str:
    """Return PostgreSQL's sentence without the row that it may cite below."""
    return " ".join((error.diag.message_primary or str(error)).split()).rstrip(".")
