"""What PostgreSQL must be told after rows have come into it past its own counters."""

from sqlalchemy import Connection, func, null, select, text, update

from service.database.copy.chunks import TABLES
from service.database.tables import epochs


def reset_sequences(connection: Connection, *, from_sqlite: bool) -> None:
    """Let PostgreSQL number new rows behind the copied ones, and know how many there are of each kind.

    SQLite does the first by itself, has little use for the second, and does not keep the heights of epochs: those
    it has are of a PostgreSQL that it came from itself, and must not be believed.
    """
    if connection.dialect.name == "sqlite":
        return
    for table in TABLES:
        column = table.autoincrement_column
        if column is not None:
            last = select(func.max(column)).scalar_subquery()
            sequence = func.pg_get_serial_sequence(table.name, column.name)
            connection.execute(select(func.setval(sequence, func.coalesce(last, 1), last.is_not(None))))
    if from_sqlite:
        connection.execute(update(epochs).values(last_seq=null()))
    connection.execute(text("ANALYZE"))
