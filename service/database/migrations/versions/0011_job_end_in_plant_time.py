"""When a job ended in plant time: it is shown beside versions, whose times are plant time."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

_OF_ITS_VERSION = "SELECT created_us FROM model_versions WHERE model_versions.id = jobs.version_id"


def upgrade() -> None:
    """Step forwards; a version was made when its job ended, and of other jobs only the wall time is known."""
    op.add_column("jobs", sa.Column("finished_plant_us", sa.BigInteger(), nullable=True))
    op.execute(f"UPDATE jobs SET finished_plant_us = COALESCE(({_OF_ITS_VERSION}), finished_us)")  # noqa: S608
