"""The few statements that SQLite and PostgreSQL spell differently."""

from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert


def upsert(
    connection: Connection,
    table: Table,
    row: dict[str, Any],
    *,
    keys: list[str],
    update: list[str] | None = None,
) -> Any:
    """Return a statement that inserts ``row`` or, where its keys exist, updates ``update`` (else the rest)."""
    insert = sqlite_insert if connection.dialect.name == "sqlite" else postgresql_insert
    names = update if update is not None else [name for name in row if name not in keys]
    rest = {name: row[name] for name in names}
    return insert(table).values(**row).on_conflict_do_update(index_elements=keys, set_=rest)


def insert_ignoring(connection: Connection, table: Table, columns: tuple[str, ...]) -> str:
    """Return driver-level SQL that inserts rows given as tuples and passes over those whose key exists.

    Plain SQL, because rows go to the driver as they are: on the hot path that is twice as fast as letting
    SQLAlchemy look at each of them.
    """
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    names, marks = ", ".join(columns), ", ".join([mark] * len(columns))
    return f"INSERT INTO {table.name} ({names}) VALUES ({marks}) ON CONFLICT DO NOTHING"  # noqa: S608 - our names
