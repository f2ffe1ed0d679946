"""Notices, who is told of them, and what keeps them quiet."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Step forwards."""
    op.create_table(
        "shelves",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("machine_id", sa.Integer(), nullable=False),
        sa.Column("code", sa.Integer(), nullable=False),
        sa.Column("from_us", sa.BigInteger(), nullable=False),
        sa.Column("until_us", sa.BigInteger(), nullable=False),
        sa.Column("lifted_us", sa.BigInteger(), nullable=True),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["machine_id"], ["machines.id"], name=op.f("fk_shelves_machine_id_machines")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_shelves")),
    )
    op.create_index("ix_shelves_machine", "shelves", ["machine_id", "until_us"])
    op.create_index("ix_shelves_until", "shelves", ["until_us"])
    op.create_table(
        "maintenance",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("machine", sa.Text(), nullable=True),
        sa.Column("from_us", sa.BigInteger(), nullable=False),
        sa.Column("until_us", sa.BigInteger(), nullable=False),
        sa.Column("cancelled_us", sa.BigInteger(), nullable=True),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_maintenance")),
    )
    op.create_index("ix_maintenance_until", "maintenance", ["until_us"])
    op.create_table(
        "notices",
        sa.Column("id", _ROW_ID, nullable=False),
        sa.Column("machine_id", sa.Integer(), nullable=False),
        sa.Column("code", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("as_of_us", sa.BigInteger(), nullable=False),
        sa.Column("horizon_end_us", sa.BigInteger(), nullable=False),
        sa.Column("probability", sa.Float(), nullable=False),
        sa.Column("threshold", sa.Float(), nullable=False),
        sa.Column("model_version", sa.Text(), nullable=False),
        sa.Column("opened_us", sa.BigInteger(), nullable=False),
        sa.Column("closed_us", sa.BigInteger(), nullable=True),
        sa.Column("ended", sa.Text(), nullable=True),
        sa.Column("rearmed_us", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["machine_id"], ["machines.id"], name=op.f("fk_notices_machine_id_machines")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notices")),
    )
    op.create_index(
        "uq_notices_open",
        "notices",
        ["machine_id", "code"],
        unique=True,
        sqlite_where=sa.text("closed_us IS NULL"),
        postgresql_where=sa.text("closed_us IS NULL"),
    )
    op.create_index("ix_notices_machine", "notices", ["machine_id", "id"])
    op.create_index("ix_notices_rearmed", "notices", ["rearmed_us"])
    op.create_table(
        "acknowledgements",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("machine_id", sa.Integer(), nullable=False),
        sa.Column("code", sa.Integer(), nullable=False),
        sa.Column("notice_id", _ROW_ID, nullable=True),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("ended_us", sa.BigInteger(), nullable=True),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["machine_id"], ["machines.id"], name=op.f("fk_acknowledgements_machine_id_machines")
        ),
        sa.ForeignKeyConstraint(
            ["notice_id"],
            ["notices.id"],
            name=op.f("fk_acknowledgements_notice_id_notices"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_acknowledgements")),
    )
    op.create_index("ix_acknowledgements_machine", "acknowledgements", ["machine_id", "id"])
    op.create_index("ix_acknowledgements_notice", "acknowledgements", ["notice_id"])
    op.create_index("ix_acknowledgements_ended", "acknowledgements", ["ended_us"])
    op.create_table(
        "webhooks",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("site", sa.Text(), nullable=True),
        sa.Column("machine", sa.Text(), nullable=True),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("trouble", sa.Text(), nullable=True),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("severity IN ('low', 'medium', 'high')", name=op.f("ck_webhooks_severity")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
    )
    op.create_table(
        "deliveries",
        sa.Column("id", _ROW_ID, nullable=False),
        sa.Column("notice_id", _ROW_ID, nullable=False),
        sa.Column("webhook_id", sa.Integer(), nullable=False),
        sa.Column("key", sa.Uuid(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_try_us", sa.BigInteger(), nullable=True),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("delivered_us", sa.BigInteger(), nullable=True),
        sa.Column("given_up_us", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["notice_id"], ["notices.id"], name=op.f("fk_deliveries_notice_id_notices"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhooks.id"], name=op.f("fk_deliveries_webhook_id_webhooks"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
        sa.UniqueConstraint("notice_id", "webhook_id", name=op.f("uq_deliveries_notice_id_webhook_id")),
    )
    op.create_index("ix_deliveries_webhook", "deliveries", ["webhook_id"])
    op.create_index("ix_deliveries_due", "deliveries", ["next_try_us"])
