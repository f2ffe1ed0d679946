"""What PostgreSQL must be told after rows have come into it past its own counters."""

from sqlalchemy import Connection, func, select, text

from service.store.tables import metadata


def settle(connection: Connection) -> None:
    """Let PostgreSQL number new rows behind the copied ones, and know how many there are of each kind.

    SQLite does the first by itself and has little use for the second.
    """
    if connection.dialect.name != "postgresql":
        return
    for table in metadata.sorted_tables:
        column = table.autoincrement_column
        if column is None:
            continue
        last = select(func.max(column)).scalar_subquery()
        sequence = func.pg_get_serial_sequence(table.name, column.name)
        connection.execute(select(func.setval(sequence, func.coalesce(last, 1), last.is_not(None))))
    connection.execute(text("ANALYZE"))
