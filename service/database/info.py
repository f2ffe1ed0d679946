"""Facts about the database: version, size, schema, and disk space of its rows."""

from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, text

from service.database.engine import Database

_BYTES_PER_EVENT = 185  # with index entries; measured over a month of 800,000 events
# Overhead per row with index entries; measured with 2, 15 and 60 target codes.
_OVERHEAD_BYTES = {"forecasts": 76, "outcomes": 106}
_ROWS = text("SELECT reltuples FROM pg_class WHERE oid = to_regclass(:table)")
# Negative where PostgreSQL has no statistics yet.
_PARTITION_ROWS = text(
    "SELECT relname, reltuples FROM pg_partition_tree('events') JOIN pg_class ON pg_class.oid = relid"
    " WHERE isleaf ORDER BY relname"
)
_WIDTH = text(
    "SELECT coalesce(sum(avg_width), 0) FROM pg_stats WHERE schemaname = current_schema() AND tablename = :table"
)


class DatabaseInfo(NamedTuple):
    """Kind, version, size on disk and schema revision of a database."""

    kind: str
    version: str
    size: int
    revision: str | None


@dataclass(frozen=True)
class DatabaseInfoReader:
    """Reads :class:`DatabaseInfo`."""

    database: Database

    def read(self) -> DatabaseInfo:
        with self.database.read() as connection:
            revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
            if self.database.is_sqlite:
                version = connection.execute(text("SELECT sqlite_version()")).scalar_one()
                pages, size = (
                    int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
                    for name in ("page_count", "page_size")
                )
                return DatabaseInfo("sqlite", str(version), pages * size, revision)
            version = connection.execute(text("SHOW server_version")).scalar_one()
            taken = connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one()
        return DatabaseInfo("postgresql", str(version).split()[0], int(taken), revision)


def bytes_in_use(connection: Connection) -> int:
    """Estimate the size of events, forecasts and outcomes on PostgreSQL from its statistics, in a transaction.

    Files do not shrink when rows are deleted, and counting all rows would take long.
    """
    others = sum(_sampled(connection, table) * _width(connection, table) for table in _OVERHEAD_BYTES)
    return int(_events(connection) * _BYTES_PER_EVENT + others)


def _events(connection: Connection) -> float:
    """Return the number of events; the oldest month, where rows are deleted, is sampled again."""
    rows, oldest = 0.0, True
    for table, counted in connection.execute(_PARTITION_ROWS).all():
        now = _sampled(connection, table) if counted < 0 or (oldest and counted) else counted
        oldest = oldest and not now
        rows += now
    return rows


def _sampled(connection: Connection, table: str) -> float:
    connection.exec_driver_sql(f"ANALYZE {table}")
    return float(connection.execute(_ROWS, {"table": table}).scalar_one())


def _width(connection: Connection, table: str) -> int:
    return int(connection.execute(_WIDTH, {"table": table}).scalar_one()) + _OVERHEAD_BYTES[table]
