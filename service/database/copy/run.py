"""A whole store from one database into another, in pieces that are each whole; then both are read and compared."""

from dataclasses import dataclass

from sqlalchemy import Connection, Table, func, select

from service.database.copy import checkpoint as bookmarks
from service.database.copy.checkpoint import CopyCheckpoint, TablePosition
from service.database.copy.chunks import TABLES, chunks, key_of, write
from service.database.copy.comparison import verify_equal
from service.database.copy.endpoint import CopyEndpoint
from service.database.copy.progress import CopyProgress, CopyStage
from service.database.copy.sequences import reset_sequences
from service.database.copy.weights import copy_weights
from service.database.schema import known_revisions
from service.errors import Conflict, InputRejected, WrongSchema


@dataclass(frozen=True)
class CopyResult:
    """How many rows were copied, how many of them by earlier runs, and which versions' weights are lost."""

    rows: int
    before: int
    lost: tuple[str, ...]


def copy_store(source: CopyEndpoint, target: CopyEndpoint, *, told: CopyProgress) -> CopyResult:
    """Copy every table, going on where an earlier run was cut off; a difference at the end is a :class:`Conflict`.

    Either may be SQLite or PostgreSQL, and nobody else may use them meanwhile.
    """
    _require_different(source, target)
    with source.held(), target.held():
        _require_current_schema(source)
        bookmark = _begun(source, target)
        before = sum(place.rows for place in bookmark.places.values())
        for table in TABLES:
            bookmark = _copy_table(source, target, table, bookmark, told)
        verify_equal(source, target, told=told)
        lost = copy_weights(source, target)
        with target.database.write() as connection:
            reset_sequences(connection, from_sqlite=source.database.is_sqlite)
            bookmarks.finish(connection)
    return CopyResult(sum(place.rows for place in bookmark.places.values()), before, lost)


def _require_different(source: CopyEndpoint, target: CopyEndpoint) -> None:
    if source.name == target.name:
        raise InputRejected(f"{source.name} is named twice; name an empty database to copy into.")
    if source.folder is not None and source.folder == target.folder:
        raise InputRejected(f"Both files lie in {source.folder}, where one process writes; name another folder.")
    if not source.database.exists:
        raise InputRejected(f"There is no database {source.name} to copy.")


def _require_current_schema(source: CopyEndpoint) -> None:
    schema = source.database.schema()
    if not schema.is_current:
        raise WrongSchema(
            f"{source.name} has schema {schema.found or 'none'}, and this version copies {schema.wanted}. "
            "Bring it there first, with the settings of its service: alarmcast migrate"
        )


def _begun(source: CopyEndpoint, target: CopyEndpoint) -> CopyCheckpoint:
    """Return where to go on; the bookmark of a new copy is laid into an empty database."""
    with target.database.read() as connection:
        found = bookmarks.find(connection)
    wanted = CopyCheckpoint(source.name, known_revisions()[-1])
    if found is None:
        target.database.upgrade()
        with target.database.write() as connection:
            _require_empty(connection, target)
            bookmarks.start(connection, wanted)
        return wanted
    if (found.source, found.schema) != (wanted.source, wanted.schema):
        raise Conflict(
            f"{target.name} holds the beginning of a copy of {found.source} in schema {found.schema}, and not of "
            f"{wanted.source} in {wanted.schema}. Finish that one, or name an empty database."
        )
    return found


def _require_empty(connection: Connection, target: CopyEndpoint) -> None:
    for table in TABLES:
        if connection.execute(select(table).limit(1)).first() is not None:
            raise Conflict(
                f"{target.name} is in use already: there are rows in {table.name}. A copy goes into an empty "
                "database; make a new one, or drop this one if nobody needs it."
            )


def _copy_table(
    source: CopyEndpoint, target: CopyEndpoint, table: Table, bookmark: CopyCheckpoint, told: CopyProgress
) -> CopyCheckpoint:
    place = bookmark.place(table)
    with source.database.read() as reading:
        total = reading.execute(select(func.count()).select_from(table)).scalar_one()
        told(CopyStage.COPYING, table.name, place.rows, total)
        for rows in chunks(reading, table, place.after):
            place = TablePosition(place.rows + len(rows), key_of(table, rows[-1]))
            bookmark = bookmark.moved(table, place)
            with target.database.write() as writing:
                write(writing, table, rows)
                bookmarks.advance(writing, bookmark)
            told(CopyStage.COPYING, table.name, place.rows, total)
    return bookmark
