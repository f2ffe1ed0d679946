"""Follow an alarm journal table by its increasing key; read only, in SQLite or PostgreSQL."""

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any, Literal, NamedTuple, Protocol

from pydantic import Field

from edge_agent.errors import ConfigRejected
from edge_agent.sources import Context, Lost, SourceBatch
from edge_agent.sources.records import read_record
from edge_agent.sources.signals import Unreachable, parse_options
from wire.broker_check import Finding
from wire.log_rows import RowRejected
from wire.records import RecordFields

_BATCH = 500
_MAX_MISSING = 500  # keys that may still appear
_MISSING_S = 60.0
_RETRY_S = 2.0
_NAME = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$"
_PRESETS: dict[str, dict[str, Any]] = {
    "ignition": {
        "table": "alarm_events",
        "key": "id",
        "time": "eventtime",
        "code": "displaypath",
        "severity": "priority",
        "state": "eventtype",
        "raised": ("0",),
        "cleared": ("1",),
        "acknowledged": ("2",),
    }
}


class SqlOptions(RecordFields):
    """The table ``[sql]``; fields are names of columns."""

    url: str = Field(pattern=r"^(sqlite:///|postgresql://)")
    preset: Literal["ignition"] | None = None
    table: str = Field(pattern=_NAME)
    key: str = Field(pattern=_NAME)
    poll_seconds: float = Field(default=2.0, gt=0, le=3600)
    start: Literal["now", "beginning"] = "now"


class Journal(Protocol):
    """A read-only connection to a database."""

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query with ``?`` for each value."""
        ...

    def close(self) -> None:
        """Disconnect."""


class _Sqlite:
    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5)
            self._inode = path.stat().st_ino
        except (sqlite3.Error, OSError) as error:
            raise Unreachable(f"{error}; check the path in sql.url") from None

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        try:
            if self._path.stat().st_ino != self._inode:
                raise Unreachable("the file was replaced")
            return self._connection.execute(query, values).fetchall()
        except (sqlite3.Error, OSError) as error:
            raise Unreachable(str(error)) from None

    def close(self) -> None:
        self._connection.close()


class _Postgresql:
    def __init__(self, url: str, password: str | None) -> None:
        try:
            import psycopg  # noqa: PLC0415 - SQLite needs no library
        except ModuleNotFoundError:
            raise ConfigRejected(
                "A PostgreSQL journal needs a library. Install it with: pip install 'alarmcast[sql]'."
            ) from None
        self._error = psycopg.Error
        more: dict[str, Any] = {"password": password} if password else {}
        try:
            self._connection = psycopg.connect(
                url,
                autocommit=True,
                connect_timeout=5,
                options="-c default_transaction_read_only=on -c statement_timeout=30000",
                **more,
            )
        except psycopg.Error as error:
            raise Unreachable(" ".join(str(error).split())) from None

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(query.replace("?", "%s").encode(), values).fetchall()
        except self._error as error:
            raise Unreachable(" ".join(str(error).split())) from None

    def close(self) -> None:
        self._connection.close()


class _Position(NamedTuple):
    """The last key, and keys below it that may still be committed."""

    last: Any
    missing: dict[int, float]

    def write(self) -> str:
        return json.dumps({"last": self.last, "missing": sorted(self.missing)})


class SqlSource:
    """Reads rows above the last key.

    Transactions may commit in another order than their keys: a key that was skipped is looked for again for a
    minute.
    """

    def __init__(self, options: SqlOptions, context: Context) -> None:
        self._options, self._context = options, context
        self._title = options.url.partition("?")[0]
        wanted = (options.code, options.time, options.text, options.severity, options.state)
        self._columns = [options.key, *dict.fromkeys(name for name in wanted if name)]
        listed = ", ".join(self._quoted(name) for name in self._columns)
        self._select = f"SELECT {listed} FROM {self._quoted(options.table)} WHERE {self._quoted(options.key)}"  # noqa: S608

    def batches(self, bookmark: str | None, stop: Event) -> Iterator[SourceBatch]:
        """Yield new rows for ever; a database that does not answer is tried again."""
        position = _read_position(bookmark)
        journal: Journal | None = None
        warned = ""
        while not stop.is_set():
            try:
                journal = journal or self._connect()
                if position is None:
                    position = self._first_position(journal)
                    yield SourceBatch([], position.write())
                lost = self._reset(journal, position)
                if lost is not None:
                    position = _Position(None, {})
                    yield SourceBatch([], position.write(), lost=lost)
                rows = self._rows(journal, position)
            except Unreachable as error:
                if str(error) != warned and position is not None:
                    warned = str(error)
                    warning = f"Cannot read {self._title}: {error}. Alarms wait in the journal."
                    yield SourceBatch([], position.write(), warning=warning)
                if journal is not None:
                    journal.close()
                journal = None
                stop.wait(_RETRY_S)
                continue
            warned = ""
            if rows:
                position = _advance(position, [row[0] for row in rows])
                yield self._batch(rows, position)
            if len(rows) < _BATCH:
                stop.wait(self._options.poll_seconds)
        if journal is not None:
            journal.close()

    def check(self) -> Iterator[Finding]:
        """Yield whether the table can be read, and its last row."""
        key = self._quoted(self._options.key)
        try:
            with closing(self._connect()) as journal:
                last = journal.rows(f"{self._select} IS NOT NULL ORDER BY {key} DESC LIMIT 1")
        except Unreachable as error:
            yield Finding("source", ok=False, message=f"cannot read {self._title}: {error}")
            return
        if not last:
            yield Finding("source", ok=None, message=f"{self._options.table} is readable, but empty")
            return
        batch = self._batch(last, _Position(last[0][0], {}))
        message = (
            batch.skipped[0] if batch.skipped else f"last row {last[0][0]} of {self._options.table} is readable"
        )
        yield Finding("source", ok=not batch.skipped, message=message)

    def _quoted(self, name: str) -> str:
        """Quote a name; SQLite takes an unknown name in double quotes for a text."""
        before, after = "[]" if self._options.url.startswith("sqlite:") else '""'
        return ".".join(f"{before}{part}{after}" for part in name.split("."))

    def _connect(self) -> Journal:
        url = self._options.url
        if url.startswith("sqlite:///"):
            return _Sqlite(Path(url.removeprefix("sqlite:///")))
        return _Postgresql(url, self._context.password)

    def _first_position(self, journal: Journal) -> _Position:
        if self._options.start == "beginning":
            return _Position(None, {})
        return _Position(self._last_key(journal), {})

    def _last_key(self, journal: Journal) -> Any:
        query = f"SELECT max({self._quoted(self._options.key)}) FROM {self._quoted(self._options.table)}"  # noqa: S608
        return journal.rows(query)[0][0]

    def _reset(self, journal: Journal, position: _Position) -> Lost | None:
        """Return a loss if the table was replaced: its keys are lower than ours."""
        if position.last is None:
            return None
        last = self._last_key(journal)
        if last is not None and last >= position.last:
            return None
        if last is None:
            return None  # emptied by its owner; numbers continue above ours, or are found lower later
        return Lost(
            f"{self._options.table} was replaced: its last key is {last}, the last one read was {position.last}. "
            "It is read from its beginning; rows of the old table may be missing.",
            None,
        )

    def _rows(self, journal: Journal, position: _Position) -> list[tuple[Any, ...]]:
        key = self._quoted(self._options.key)
        late: list[tuple[Any, ...]] = []
        _forget(position.missing)
        if position.missing:
            marks = ", ".join("?" * len(position.missing))
            late = journal.rows(f"{self._select} IN ({marks}) ORDER BY {key}", *position.missing)
        if position.last is None:
            return late + journal.rows(f"{self._select} IS NOT NULL ORDER BY {key} LIMIT {_BATCH}")
        return late + journal.rows(f"{self._select} > ? ORDER BY {key} LIMIT {_BATCH}", position.last)

    def _batch(self, rows: list[tuple[Any, ...]], position: _Position) -> SourceBatch:
        batch = SourceBatch([], position.write())
        for row in rows:
            values = dict(zip(self._columns, row, strict=True))
            try:
                record = read_record(values.__getitem__, self._options, self._context)
            except RowRejected as error:
                batch.skipped.append(f"{self._options.table} {row[0]}: {error}")
                continue
            if record is not None:
                batch.add(*record)
        return batch


def _advance(position: _Position, keys: list[Any]) -> _Position:
    """Return the position after rows; keys that were skipped are looked for again."""
    missing = {key: until for key, until in position.missing.items() if key not in keys}
    last = position.last
    until = time.monotonic() + _MISSING_S
    for key in keys:
        if isinstance(key, int) and isinstance(last, int) and 1 < key - last <= _MAX_MISSING:
            missing.update(dict.fromkeys(range(last + 1, key), until))
        last = key if last is None or key > last else last
    newest = sorted(missing)[-_MAX_MISSING:]
    return _Position(last, {key: missing[key] for key in newest})


def _forget(missing: dict[int, float]) -> None:
    now = time.monotonic()
    for key in [key for key, until in missing.items() if until < now]:
        del missing[key]


def _read_position(bookmark: str | None) -> _Position | None:
    if bookmark is None:
        return None
    stored = json.loads(bookmark)
    until = time.monotonic() + _MISSING_S
    return _Position(stored["last"], dict.fromkeys(stored["missing"], until))


def build(options: dict[str, Any], context: Context) -> SqlSource:
    """Return the source of the table ``[sql]``."""
    preset = _PRESETS.get(str(options.get("preset")), {})
    parsed = parse_options(SqlOptions, preset | options, "sql")
    if parsed.time is None:
        raise ConfigRejected("The setting sql.time is missing.")
    return SqlSource(parsed, context)
