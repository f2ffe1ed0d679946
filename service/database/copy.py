"""Copy all rows of one database into another, in chunks; then compare both. An interrupted copy can be resumed."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from typing import Any, Protocol

from sqlalchemy import (
    Column,
    Connection,
    LargeBinary,
    MetaData,
    Select,
    Table,
    Text,
    func,
    insert,
    inspect,
    literal,
    null,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from service.database.copy_endpoint import CopyEndpoint
from service.database.dialect import Rows, copy_rows, insert_new
from service.database.event_row import IN_TIME
from service.database.partitions import create_months, months_of
from service.database.schema import UNFINISHED_COPY, known_revisions
from service.database.tables import epochs, events, metadata, model_versions, weights
from service.database.weight_files import WeightsFolder
from service.errors import Conflict, InputRejected, Unavailable, WrongSchema

# Referenced tables first. Weights are rows or files and are copied separately.
TABLES = tuple(table for table in metadata.sorted_tables if table is not weights)
_ROWS_PER_CHUNK = 10_000
_ROWS_WITH_BYTES_PER_CHUNK = 250  # the windows of a holdout set take a megabyte
# Not in the schema: the table exists only in the target of an unfinished copy, and no service starts on that.
_checkpoint = Table(UNFINISHED_COPY, MetaData(), Column("state", Text, nullable=False))


class CopyStage(StrEnum):
    """What is being done with a table."""

    COPYING = "Copying"
    CHECKING = "Checking"


class CopyProgress(Protocol):
    """Callback with the number of processed rows of a table and their total."""

    def __call__(self, stage: CopyStage, table: str, rows: int, total: int, /) -> None: ...


@dataclass(frozen=True)
class CopyResult:
    """Number of copied rows, those copied by earlier runs, and versions with missing weights."""

    rows: int
    resumed: int
    lost: tuple[str, ...]


@dataclass(frozen=True)
class TablePosition:
    """Number of copied rows of a table and the key of the last one."""

    rows: int = 0
    after: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class CopyCheckpoint:
    """Progress of a copy, stored in the target in the transaction of the rows it describes."""

    source: str
    schema: str
    positions: Mapping[str, TablePosition] = field(default_factory=dict)

    @classmethod
    def load(cls, connection: Connection) -> "CopyCheckpoint | None":
        if not inspect(connection).has_table(UNFINISHED_COPY):
            return None
        state = json.loads(connection.execute(select(_checkpoint.c.state)).scalar_one())
        positions = {
            name: TablePosition(position["rows"], None if position["after"] is None else tuple(position["after"]))
            for name, position in state["positions"].items()
        }
        return cls(state["source"], state["schema"], positions)

    @property
    def rows(self) -> int:
        return sum(position.rows for position in self.positions.values())

    def create(self, connection: Connection) -> None:
        _checkpoint.create(connection)
        connection.execute(insert(_checkpoint).values(state=json.dumps(asdict(self))))

    def save(self, connection: Connection) -> None:
        connection.execute(update(_checkpoint).values(state=json.dumps(asdict(self))))

    def at(self, table: Table, position: TablePosition) -> "CopyCheckpoint":
        return replace(self, positions={**self.positions, table.name: position})


def copy_database(source: CopyEndpoint, target: CopyEndpoint, *, on_progress: CopyProgress) -> CopyResult:
    """Copy every table, resuming an interrupted copy; raise :class:`Conflict` if both differ at the end.

    Both may be SQLite or PostgreSQL; no other process may use them meanwhile.
    """
    _require_different(source, target)
    with source.held(), target.held():
        _require_current_schema(source)
        checkpoint = _start_or_resume(source, target)
        resumed = checkpoint.rows
        for table in TABLES:
            checkpoint = _copy_table(source, target, table, checkpoint, on_progress)
        _verify_equal(source, target, on_progress)
        lost = _copy_weights(source, target)
        with target.database.write() as connection:
            _reset_sequences(connection, from_sqlite=source.database.is_sqlite)
            _checkpoint.drop(connection)
    return CopyResult(checkpoint.rows, resumed, lost)


def _require_different(source: CopyEndpoint, target: CopyEndpoint) -> None:
    if source.name == target.name:
        raise InputRejected(f"{source.name} is named twice; name an empty database to copy into.")
    if source.folder is not None and source.folder == target.folder:
        raise InputRejected(f"Both files are in {source.folder}, where one process writes; name another folder.")
    if not source.database.exists:
        raise InputRejected(f"There is no database {source.name} to copy.")


def _require_current_schema(source: CopyEndpoint) -> None:
    schema = source.database.schema()
    if not schema.is_current:
        raise WrongSchema(
            f"{source.name} has schema {schema.found or 'none'}, and this version copies {schema.wanted}. "
            "Upgrade it first, with the settings of its service: alarmcast migrate"
        )


def _start_or_resume(source: CopyEndpoint, target: CopyEndpoint) -> CopyCheckpoint:
    with target.database.read() as connection:
        found = CopyCheckpoint.load(connection)
    wanted = CopyCheckpoint(source.name, known_revisions()[-1])
    if found is None:
        target.database.upgrade()
        with target.database.write() as connection:
            _require_empty(connection, target)
            wanted.create(connection)
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
                f"{target.name} is in use already: there are rows in {table.name}. A copy needs an empty "
                "database; create a new one, or drop this one if it is not needed."
            )


def _copy_table(
    source: CopyEndpoint,
    target: CopyEndpoint,
    table: Table,
    checkpoint: CopyCheckpoint,
    on_progress: CopyProgress,
) -> CopyCheckpoint:
    position = checkpoint.positions.get(table.name, TablePosition())
    with source.database.read() as reading:
        total = reading.execute(select(func.count()).select_from(table)).scalar_one()
        on_progress(CopyStage.COPYING, table.name, position.rows, total)
        for rows in _rows_after(reading, table, position.after):
            position = TablePosition(position.rows + len(rows), _key(table, rows[-1]))
            checkpoint = checkpoint.at(table, position)
            with target.database.write() as writing:
                _write(writing, table, rows)
                checkpoint.save(writing)
            on_progress(CopyStage.COPYING, table.name, position.rows, total)
    return checkpoint


def _rows_after(connection: Connection, table: Table, after: tuple[Any, ...] | None) -> Iterator[Rows]:
    key = tuple(table.primary_key)
    query = select(*table.columns).order_by(*key)
    if after is not None:
        last = (literal(value, column.type) for value, column in zip(after, key, strict=True))
        query = query.where(tuple_(*key) > tuple_(*last))
    return _chunks(connection, table, query)


def _chunks(connection: Connection, table: Table, query: Select[Any]) -> Iterator[Rows]:
    """Yield rows with at most one chunk in memory."""
    has_bytes = any(isinstance(column.type, LargeBinary) for column in table.columns)
    size = _ROWS_WITH_BYTES_PER_CHUNK if has_bytes else _ROWS_PER_CHUNK
    with connection.execute(query.execution_options(yield_per=size)) as result:
        for chunk in result.partitions():
            yield [tuple(row) for row in chunk]


def _key(table: Table, row: tuple[Any, ...]) -> tuple[Any, ...]:
    names = table.columns.keys()
    return tuple(row[names.index(column.name)] for column in table.primary_key)


def _write(connection: Connection, table: Table, rows: Rows) -> None:
    names = tuple(table.columns.keys())
    if connection.dialect.name == "sqlite":
        connection.execute(insert(table), [dict(zip(names, row, strict=True)) for row in rows])
        return
    if table is events:
        at_us, flag = names.index("at_us"), names.index("flag")
        create_months(connection, months_of(row[at_us] for row in rows if row[flag] == IN_TIME))
    try:
        copy_rows(connection, table, names, rows)
    except (DataError, IntegrityError) as error:
        raise InputRejected(
            f"PostgreSQL does not accept one of {len(rows)} rows of {table.name} from {_key(table, rows[0])} on: "
            f"{_reason(error)}. Correct it in the source, then run the same command again."
        ) from error


def _reason(error: DBAPIError) -> str:
    """Return the first line of PostgreSQL's message, without the row that it may quote below."""
    return str(error.orig).partition("\n")[0].rstrip(".")


def _verify_equal(source: CopyEndpoint, target: CopyEndpoint, on_progress: CopyProgress) -> None:
    differences = [
        f"{table.name} ({difference})"
        for table in TABLES
        if (difference := _difference(source, target, table, on_progress))
    ]
    if differences:
        raise Conflict(
            f"The copy differs from its source in {', '.join(differences)}: another program wrote to one of them "
            f"meanwhile. No service starts on {target.name} as it is; drop it, create an empty one and copy again."
        )


def _difference(source: CopyEndpoint, target: CopyEndpoint, table: Table, on_progress: CopyProgress) -> str | None:
    with source.database.read() as connection:
        total = 2 * connection.execute(select(func.count()).select_from(table)).scalar_one()
        original = _fingerprint(
            connection, table, lambda rows: on_progress(CopyStage.CHECKING, table.name, rows, total)
        )
    with target.database.read() as connection:
        copy = _fingerprint(
            connection, table, lambda rows: on_progress(CopyStage.CHECKING, table.name, original[0] + rows, total)
        )
    if copy[0] != original[0]:
        return f"{original[0]} rows became {copy[0]}"
    return None if copy == original else f"{copy[0]} rows, not all the same"


def _fingerprint(connection: Connection, table: Table, on_rows: Callable[[int], None]) -> tuple[int, int]:
    """Return the number of rows of a table and the sum of their hashes, in any order.

    Rows are hashed as Python values of the schema's types, so the result does not depend on the database.
    """
    rows = checksum = 0
    for chunk in _chunks(connection, table, select(*table.columns)):
        checksum += sum(int.from_bytes(sha256(repr(row).encode()).digest()[:8], "big") for row in chunk)
        rows += len(chunk)
        on_rows(rows)
    return rows, checksum % (1 << 64)


def _copy_weights(source: CopyEndpoint, target: CopyEndpoint) -> tuple[str, ...]:
    """Copy the weights of every version; return the versions whose weights are missing, which is no error."""
    query = select(model_versions.c.id, model_versions.c.weights).where(model_versions.c.pruned.is_(False))
    with source.database.read() as connection:
        versions = connection.execute(query.order_by(model_versions.c.id)).all()
    lost = []
    for version_id, name in versions:
        body = _read_weights(source, name)
        if body is None:
            lost.append(f"v{version_id}")
        elif target.folder is not None:
            WeightsFolder(target.folder / "weights").write(name, body)
        else:
            with target.database.write() as connection:
                connection.execute(insert_new(connection, weights, {"sha256": name, "body": body}))
    return tuple(lost)


def _read_weights(source: CopyEndpoint, name: str) -> bytes | None:
    if source.folder is not None:
        try:
            return WeightsFolder(source.folder / "weights").read(name)
        except Unavailable:
            return None
    with source.database.read() as connection:
        body = connection.execute(select(weights.c.body).where(weights.c.sha256 == name)).scalar()
    return body if body is not None and sha256(body).hexdigest() == name else None


def _reset_sequences(connection: Connection, *, from_sqlite: bool) -> None:
    """Continue PostgreSQL's sequences after the copied ids, and update its statistics.

    SQLite does not maintain the high-water marks of epochs, so its values are discarded.
    """
    if connection.dialect.name == "sqlite":
        return
    for table in TABLES:
        column = table.autoincrement_column
        if column is not None:
            last = select(func.max(column)).scalar_subquery()
            sequence = func.pg_get_serial_sequence(table.name, column.name)
            connection.execute(select(func.setval(sequence, func.coalesce(last, 1), last.is_not(None))))
    if from_sqlite:
        connection.execute(update(epochs).values(last_seq=null()))
    connection.execute(text("ANALYZE"))
