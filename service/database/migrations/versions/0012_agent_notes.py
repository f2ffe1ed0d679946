"""What agents report beside their alarms: rows they cannot read, warnings, and another agent of the same name."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

_TEXTS = ("last_skipped", "warning", "rival")


def upgrade() -> None:
    """Step forwards."""
    op.add_column("agents", sa.Column("state_us", sa.BigInteger(), nullable=True))
    op.add_column("agents", sa.Column("skipped", sa.BigInteger(), nullable=True))
    for name in _TEXTS:
        op.add_column("agents", sa.Column(name, sa.Text(), nullable=True))
        op.add_column("agents", sa.Column(f"{name}_us", sa.BigInteger(), nullable=True))
