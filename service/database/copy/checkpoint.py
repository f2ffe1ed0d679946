"""How far a copy has come, kept in the target and committed with the rows it speaks of.

While it is there the target is not whole, and no service starts on it (:func:`service.database.schema.look`).
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from sqlalchemy import Column, Connection, MetaData, Table, Text, insert, inspect, select, update

from service.database.schema import UNFINISHED_COPY

# Not in the schema: a database has it only while it is copied into.
_bookmark = Table(UNFINISHED_COPY, MetaData(), Column("state", Text, nullable=False))


@dataclass(frozen=True)
class TablePosition:
    """How much of one table has been copied: so many rows, the last of them with this key."""

    rows: int = 0
    after: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class CopyCheckpoint:
    """What is copied, in which schema, and how far each table has come."""

    source: str
    schema: str
    places: Mapping[str, TablePosition] = field(default_factory=dict)

    def place(self, table: Table) -> TablePosition:
        """Return where a table goes on."""
        return self.places.get(table.name, TablePosition())

    def moved(self, table: Table, place: TablePosition) -> "CopyCheckpoint":
        """Return the bookmark after another piece of a table."""
        return replace(self, places={**self.places, table.name: place})


def find(connection: Connection) -> CopyCheckpoint | None:
    """Return the bookmark of a copy that was begun, if one was."""
    if not inspect(connection).has_table(UNFINISHED_COPY):
        return None
    state = json.loads(connection.execute(select(_bookmark.c.state)).scalar_one())
    places = {
        name: TablePosition(place["rows"], None if place["after"] is None else tuple(place["after"]))
        for name, place in state["places"].items()
    }
    return CopyCheckpoint(state["source"], state["schema"], places)


def start(connection: Connection, bookmark: CopyCheckpoint) -> None:
    """Begin a copy."""
    _bookmark.create(connection)
    connection.execute(insert(_bookmark).values(state=json.dumps(asdict(bookmark))))


def advance(connection: Connection, bookmark: CopyCheckpoint) -> None:
    """Say how far the copy has come, in the transaction that brought it there."""
    connection.execute(update(_bookmark).values(state=json.dumps(asdict(bookmark))))


def finish(connection: Connection) -> None:
    """End a copy: from now on the target is a database like any other."""
    _bookmark.drop(connection)
