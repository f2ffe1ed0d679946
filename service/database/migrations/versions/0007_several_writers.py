"""Events by month on PostgreSQL, and what several processes on several hosts need: epochs' heights, weights."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

# Split by flag, then by month; everything is moved before there are indexes, which are built faster over rows.
_SPLIT = (
    "ALTER TABLE events RENAME TO events_before",
    "CREATE TABLE events (LIKE events_before) PARTITION BY LIST (flag)",
    "CREATE TABLE events_in_time PARTITION OF events FOR VALUES IN (0) PARTITION BY RANGE (at_us)",
    "CREATE TABLE events_flagged PARTITION OF events DEFAULT",
)
_MONTHS = (
    "SELECT DISTINCT to_char(month, 'YYYY_MM'), CAST(EXTRACT(EPOCH FROM month) * 1000000 AS bigint),"
    " CAST(EXTRACT(EPOCH FROM month + interval '1 month') * 1000000 AS bigint) FROM"
    " (SELECT date_trunc('month', timestamp '1970-01-01' + at_us / 86400000000 * interval '1 day') AS month"
    " FROM events_before WHERE flag = 0) AS used"
)
_MONTH = "CREATE TABLE events_{} PARTITION OF events_in_time FOR VALUES FROM ({}) TO ({})"
_MOVE = (
    "INSERT INTO events SELECT * FROM events_before",
    "DROP TABLE events_before",
    "ALTER TABLE events ADD CONSTRAINT pk_events PRIMARY KEY (epoch_id, seq, at_us, flag)",
    "CREATE INDEX ix_events_window ON events (machine_id, at_us, code, epoch_id, seq, flag) WHERE flag = 0",
    "CREATE INDEX ix_events_flagged ON events (machine_id, at_us) WHERE flag <> 0",
    "ANALYZE events",  # or the first queries would not know what there is
)


def upgrade() -> None:
    """Step forwards."""
    op.add_column("epochs", sa.Column("last_seq", sa.BigInteger(), nullable=True))
    op.create_table(
        "weights",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_weights")),
    )
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        return
    for statement in _SPLIT:
        op.execute(statement)
    for name, start, end in connection.execute(sa.text(_MONTHS)).all():
        op.execute(_MONTH.format(name, start, end))
    for statement in _MOVE:
        op.execute(statement)
