"""The identity of an installation, and passwords of which nobody knows whether somebody has them."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Step forwards."""
    op.create_table(
        "installation",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("identity", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_installation")),
    )
    op.add_column("credentials", sa.Column("unconfirmed_us", sa.BigInteger(), nullable=True))
