"""How much the days take on PostgreSQL: events, stored forecasts and their outcomes, as it has counted their rows.

Files do not shrink when rows go, and counting all rows would take long, so samples have to do.
"""

from sqlalchemy import Connection, text

_BYTES_AN_EVENT = 185  # a row with its entries in the indexes, as measured over a month of 800,000
# What a row takes beside its values, indexes included, as measured with 2, 15 and 60 target codes.
_BYTES_BESIDE = {"forecasts": 76, "outcomes": 106}
_ROWS = text("SELECT reltuples FROM pg_class WHERE oid = to_regclass(:table)")
# Negative where PostgreSQL has not counted yet.
_COUNTED = text(
    "SELECT relname, reltuples FROM pg_partition_tree('events') JOIN pg_class ON pg_class.oid = relid"
    " WHERE isleaf ORDER BY relname"
)
_WIDTH = text(
    "SELECT coalesce(sum(avg_width), 0) FROM pg_stats WHERE schemaname = current_schema() AND tablename = :table"
)


def bytes_in_use(connection: Connection) -> int:
    """Return how much the days take, without what deleted rows have left free; inside a transaction."""
    beside = sum(_sampled(connection, table) * _width(connection, table) for table in _BYTES_BESIDE)
    return int(_events(connection) * _BYTES_AN_EVENT + beside)


def _events(connection: Connection) -> float:
    """Return how many events there are; the oldest month, from which they go, is asked for a new sample."""
    rows, oldest = 0.0, True
    for table, counted in connection.execute(_COUNTED).all():
        now = _sampled(connection, table) if counted < 0 or (oldest and counted) else counted
        oldest = oldest and not now
        rows += now
    return rows


def _sampled(connection: Connection, table: str) -> float:
    connection.exec_driver_sql(f"ANALYZE {table}")
    return float(connection.execute(_ROWS, {"table": table}).scalar_one())


def _width(connection: Connection, table: str) -> int:
    """Return what a row takes, which depends on how many codes are forecast; once it has been sampled."""
    return int(connection.execute(_WIDTH, {"table": table}).scalar_one()) + _BYTES_BESIDE[table]
