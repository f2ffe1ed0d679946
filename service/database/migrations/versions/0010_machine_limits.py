"""What one machine may keep is limited: the quarantine is counted by machine, and what was left out is counted."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Step forwards."""
    op.create_table(
        "excess",
        sa.Column("machine_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("since_us", sa.BigInteger(), nullable=False),
        sa.Column("last_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("machine_id", "kind", name=op.f("pk_excess")),
    )
    op.create_index("ix_quarantine_machine", "quarantine", ["machine_id"])
