"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Step forwards."""
    op.create_table(
        "catalogue",
        sa.Column("code", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("target", sa.Boolean(), nullable=False),
        sa.CheckConstraint("severity IN ('low', 'medium', 'high')", name=op.f("ck_catalogue_severity")),
        sa.PrimaryKeyConstraint("code", name=op.f("pk_catalogue")),
    )
    op.create_table(
        "events",
        sa.Column("epoch_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("machine_id", sa.Integer(), nullable=False),
        sa.Column("code", sa.Integer(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("received_us", sa.BigInteger(), nullable=False),
        sa.Column("flag", sa.SmallInteger(), nullable=False),
        sa.PrimaryKeyConstraint("epoch_id", "seq", name=op.f("pk_events")),
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("events", schema=None) as batch_op:
        batch_op.create_index(
            "ix_events_flagged",
            ["machine_id", "at_us"],
            unique=False,
            sqlite_where=sa.text("flag <> 0"),
            postgresql_where=sa.text("flag <> 0"),
        )
        batch_op.create_index(
            "ix_events_window",
            ["machine_id", "at_us", "code", "epoch_id", "seq", "flag"],
            unique=False,
            sqlite_where=sa.text("flag = 0"),
            postgresql_where=sa.text("flag = 0"),
        )

    op.create_table(
        "gaps",
        sa.Column("epoch_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("first_seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("machine_id", sa.Integer(), nullable=False),
        sa.Column("first_us", sa.BigInteger(), nullable=False),
        sa.Column("last_us", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("received_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("epoch_id", "first_seq", name=op.f("pk_gaps")),
    )
    with op.batch_alter_table("gaps", schema=None) as batch_op:
        batch_op.create_index("ix_gaps_machine", ["machine_id", "last_us"], unique=False)

    op.create_table(
        "knocks",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("machine", sa.Text(), nullable=False),
        sa.Column("first_us", sa.BigInteger(), nullable=False),
        sa.Column("last_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("site", "machine", name=op.f("pk_knocks")),
    )
    op.create_table(
        "machines",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("machine", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("time_zone", sa.Text(), nullable=False),
        sa.Column("registered_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_machines")),
        sa.UniqueConstraint("site", "machine", name=op.f("uq_machines_site_machine")),
    )
    op.create_table(
        "model_versions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("weights", sa.Text(), nullable=False),
        sa.Column("report", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model_versions")),
    )
    op.create_table(
        "agents",
        sa.Column("machine_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("online", sa.Boolean(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=True),
        sa.Column("epoch", sa.Uuid(), nullable=True),
        sa.Column("spooled", sa.BigInteger(), nullable=True),
        sa.Column("skew_ms", sa.BigInteger(), nullable=True),
        sa.Column("heard_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["machine_id"], ["machines.id"], name=op.f("fk_agents_machine_id_machines")),
        sa.PrimaryKeyConstraint("machine_id", name=op.f("pk_agents")),
    )
    op.create_table(
        "epochs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("machine_id", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(["machine_id"], ["machines.id"], name=op.f("fk_epochs_machine_id_machines")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_epochs")),
        sa.UniqueConstraint("machine_id", "epoch", name=op.f("uq_epochs_machine_id_epoch")),
    )
    op.create_table(
        "forecasts",
        sa.Column("machine_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("as_of_us", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version_id", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("events_seen", sa.Integer(), nullable=False),
        sa.Column("coverage", sa.Float(), nullable=False),
        sa.Column("probabilities", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["machine_id"], ["machines.id"], name=op.f("fk_forecasts_machine_id_machines")),
        sa.ForeignKeyConstraint(
            ["version_id"], ["model_versions.id"], name=op.f("fk_forecasts_version_id_model_versions")
        ),
        sa.PrimaryKeyConstraint("machine_id", "as_of_us", name=op.f("pk_forecasts")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "promotions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("version_id", sa.Integer(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["version_id"], ["model_versions.id"], name=op.f("fk_promotions_version_id_model_versions")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_promotions")),
    )
    with op.batch_alter_table("promotions", schema=None) as batch_op:
        batch_op.create_index("ix_promotions_at", ["at_us"], unique=False)

    op.create_table(
        "quarantine",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("machine_id", sa.Integer(), nullable=True),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("received_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["machine_id"], ["machines.id"], name=op.f("fk_quarantine_machine_id_machines")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_quarantine")),
        sa.UniqueConstraint("topic", "reason", "sha256", name=op.f("uq_quarantine_topic_reason_sha256")),
    )
    with op.batch_alter_table("quarantine", schema=None) as batch_op:
        batch_op.create_index("ix_quarantine_reason", ["reason", "id"], unique=False)
