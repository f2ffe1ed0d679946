"""What became of forecasts."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Step forwards."""
    op.create_table(
        "version_measures",
        sa.Column("version_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("lookback_us", sa.BigInteger(), nullable=False),
        sa.Column("horizon_us", sa.BigInteger(), nullable=False),
        sa.Column("codes", sa.LargeBinary(), nullable=False),
        sa.Column("thresholds", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["version_id"],
            ["model_versions.id"],
            name=op.f("fk_version_measures_version_id_model_versions"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("version_id", name=op.f("pk_version_measures")),
    )
    op.create_table(
        "scored",
        sa.Column("machine_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("through_us", sa.BigInteger(), nullable=False),
        sa.Column("late", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["machine_id"], ["machines.id"], name=op.f("fk_scored_machine_id_machines"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("machine_id", name=op.f("pk_scored")),
    )
    op.create_table(
        "outcomes",
        sa.Column("machine_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("as_of_us", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("horizon_end_us", sa.BigInteger(), nullable=False),
        sa.Column("events_came", sa.Integer(), nullable=False),
        sa.Column("unheard", sa.Boolean(), nullable=False),
        sa.Column("marks", sa.LargeBinary(), nullable=False),
        sa.Column("base_rates", sa.LargeBinary(), nullable=False),
        sa.Column("scored_us", sa.BigInteger(), nullable=False),
        sa.Column("revised", sa.Integer(), nullable=False),
        sa.Column("stale", sa.SmallInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["machine_id", "as_of_us"],
            ["forecasts.machine_id", "forecasts.as_of_us"],
            name=op.f("fk_outcomes_machine_id_forecasts"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("machine_id", "as_of_us", name=op.f("pk_outcomes")),
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("outcomes", schema=None) as batch_op:
        batch_op.create_index("ix_outcomes_horizon", ["machine_id", "horizon_end_us"], unique=False)
        batch_op.create_index(
            "ix_outcomes_stale",
            ["machine_id", "stale", "as_of_us"],
            unique=False,
            sqlite_where=sa.text("stale = 1"),
            postgresql_where=sa.text("stale = 1"),
        )
