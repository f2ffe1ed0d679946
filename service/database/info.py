"""What there is to know about the database itself."""

from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import text

from service.database.engine import Database


class DatabaseInfo(NamedTuple):
    """Which database it is, how large, and at which step of the schema."""

    kind: str
    version: str
    size: int
    revision: str | None


@dataclass(frozen=True)
class DatabaseInfoReader:
    """Asks the database about itself."""

    database: Database

    def read(self) -> DatabaseInfo:
        """Return the facts as they are now; the size is what its file or its tables take on the disk."""
        with self.database.read() as connection:
            revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
            if self.database.is_sqlite:
                version = connection.execute(text("SELECT sqlite_version()")).scalar_one()
                pages, size = (
                    int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
                    for name in ("page_count", "page_size")
                )
                return DatabaseInfo("sqlite", str(version), pages * size, revision)
            version = connection.execute(text("SHOW server_version")).scalar_one()
            taken = connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one()
        return DatabaseInfo("postgresql", str(version).split()[0], int(taken), revision)
