"""Schema revision of a database, and its upgrade in one transaction."""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from service import __version__
from service.database.locks import Advisory
from service.errors import WrongSchema

SCRIPTS = Path(__file__).parent / "migrations"
UNFINISHED_COPY = "unfinished_copy"  # table of an unfinished copy into the database
_VERSION_TABLE = "alembic_version"
_MAX_TABLES_NAMED = 3


@dataclass(frozen=True)
class Schema:
    """Schema of a database (None if empty) and the schemas that this version knows."""

    found: str | None
    known: tuple[str, ...]  # oldest first

    @property
    def wanted(self) -> str:
        return self.known[-1]

    @property
    def is_current(self) -> bool:
        return self.found == self.wanted


def read_schema(connection: Connection, scripts: Path | None = None) -> Schema:
    """Return the schema, or raise :class:`WrongSchema` for a foreign, incomplete or newer database."""
    known = known_revisions(scripts)
    tables = set(inspect(connection).get_table_names())
    if UNFINISHED_COPY in tables:
        raise WrongSchema(
            "A copy into this database was begun and has not ended. Give the same command again, alarmcast admin "
            "copy-database FROM TO, which resumes it; or name another database."
        )
    revisions: list[str] = []
    if _VERSION_TABLE in tables:
        revisions = [row[0] for row in connection.execute(text(f"SELECT version_num FROM {_VERSION_TABLE}"))]  # noqa: S608 - our name
    others = sorted(tables - {_VERSION_TABLE})
    if not revisions and others:
        some = ", ".join(others[:_MAX_TABLES_NAMED]) + (", …" if len(others) > _MAX_TABLES_NAMED else "")
        raise WrongSchema(
            f"The database holds tables ({some}) but no "
            "number of a schema: it is not Alarmcast's, or older than every release. Name an empty one with "
            "ALARMCAST_DATA_DIR or ALARMCAST_DATABASE_URL, or restore a backup: alarmcast admin restore FOLDER"
        )
    if len(revisions) > 1 or not set(revisions) <= set(known):
        raise WrongSchema(
            f"The database has schema {', '.join(sorted(revisions))}; Alarmcast {__version__} knows those up to "
            f"{known[-1]}. A newer version has written it: start that version again, or restore the backup "
            "from before the upgrade: alarmcast admin restore FOLDER"
        )
    return Schema(revisions[0] if revisions else None, known)


def known_revisions(scripts: Path | None = None) -> tuple[str, ...]:
    """Return all revisions, oldest first, from the names of the migration scripts."""
    return tuple(
        sorted(script.name.partition("_")[0] for script in (scripts or SCRIPTS).glob("versions/[0-9]*_*.py"))
    )


def migrate(connection: Connection, to: str = "head", scripts: Path | None = None) -> None:
    """Upgrade inside the connection's transaction; DDL is transactional on both databases."""
    if connection.dialect.name == "postgresql":  # processes that start together wait
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": Advisory.SCHEMA.value})
    from alembic import command  # noqa: PLC0415 - most starts find nothing to do
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(scripts or SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, to)
