"""The few statements that SQLite and PostgreSQL spell differently."""

from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert


def upsert(connection: Connection, table: Table, row: dict[str, Any], *, keys: list[str]) -> Any:
    """Return a statement that inserts ``row`` or, where its keys exist, updates the rest of it."""
    insert = sqlite_insert if connection.dialect.name == "sqlite" else postgresql_insert
    rest = {name: value for name, value in row.items() if name not in keys}
    return insert(table).values(**row).on_conflict_do_update(index_elements=keys, set_=rest)


def insert_sql(
    connection: Connection, table: Table, columns: tuple[str, ...], *, on_conflict: str = "DO NOTHING"
) -> str:
    """Return driver-level SQL that inserts rows given as tuples, and what to do with those whose key exists.

    Plain SQL, because rows go to the driver as they are: on the hot path that is twice as fast as letting
    SQLAlchemy look at each of them.
    """
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    names, marks = ", ".join(columns), ", ".join([mark] * len(columns))
    return f"INSERT INTO {table.name} ({names}) VALUES ({marks}) ON CONFLICT {on_conflict}"  # noqa: S608 - our names
