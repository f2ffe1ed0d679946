"""What a database has and the code does not believe in, or the other way round."""

import re
from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection

from service.database.tables import metadata

_PART = re.compile(r"events_(in_time|flagged|\d{4}_\d{2})")


def differences(connection: Connection) -> list[Any]:
    """Compare a database with the tables of the code; the parts of a table are no tables of their own."""

    def counts(name: str | None, kind: str, _parents: object) -> bool:
        return kind != "table" or not _PART.fullmatch(name or "")

    context = MigrationContext.configure(connection, opts={"include_name": counts})
    return list(compare_metadata(context, metadata))
