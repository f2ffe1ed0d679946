"""What lets machines in at the broker."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Step forwards."""
    op.create_table(
        "credentials",
        sa.Column("machine_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("client_id", sa.Text(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("issued_us", sa.BigInteger(), nullable=False),
        sa.Column("rotated_us", sa.BigInteger(), nullable=True),
        sa.Column("revoked_us", sa.BigInteger(), nullable=True),
        sa.Column("locked_out_us", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["machine_id"], ["machines.id"], name=op.f("fk_credentials_machine_id_machines")),
        sa.PrimaryKeyConstraint("machine_id", name=op.f("pk_credentials")),
        sa.UniqueConstraint("username", name=op.f("uq_credentials_username")),
    )
