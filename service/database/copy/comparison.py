"""Both ends of a copy read to the last row: every table must hold the same, in whichever order."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from sqlalchemy import Connection, Table, func, select

from service.database.copy.chunks import TABLES, all_rows
from service.database.copy.endpoint import CopyEndpoint
from service.database.copy.progress import CopyProgress, CopyStage
from service.errors import Conflict

_MODULUS = 1 << 64
_BYTES = 8


@dataclass(frozen=True)
class Fingerprint:
    """What a table holds: so many rows, and the sum of their hashes."""

    rows: int
    checksum: int


def fingerprint(connection: Connection, table: Table, *, told: Callable[[int], None]) -> Fingerprint:
    """Read a whole table; ``told`` hears how many rows have been read.

    A row is hashed as Python writes the values of the schema's types, so that a UUID, a truth or a text is the
    same one however a database keeps it, and 1 is neither "1" nor 1.0.
    """
    rows = checksum = 0
    for piece in all_rows(connection, table):
        checksum += sum(int.from_bytes(sha256(repr(row).encode()).digest()[:_BYTES], "big") for row in piece)
        rows += len(piece)
        told(rows)
    return Fingerprint(rows, checksum % _MODULUS)


def verify_equal(source: CopyEndpoint, target: CopyEndpoint, *, told: CopyProgress) -> None:
    """Raise :class:`Conflict`, naming every table that differs and how."""
    differences = [
        f"{table.name} ({difference})"
        for table in TABLES
        if (difference := _difference(source, target, table, told))
    ]
    if differences:
        raise Conflict(
            f"The copy differs from its original in {', '.join(differences)}: somebody wrote to one of them in "
            f"between. No service starts on {target.name} as it is; drop it, make an empty one and copy again."
        )


def _difference(source: CopyEndpoint, target: CopyEndpoint, table: Table, told: CopyProgress) -> str | None:
    with source.database.read() as connection:
        total = 2 * connection.execute(select(func.count()).select_from(table)).scalar_one()
        original = fingerprint(
            connection, table, told=lambda rows: told(CopyStage.CHECKING, table.name, rows, total)
        )
    with target.database.read() as connection:
        copy = fingerprint(
            connection, table, told=lambda rows: told(CopyStage.CHECKING, table.name, original.rows + rows, total)
        )
    if copy.rows != original.rows:
        return f"{original.rows} rows became {copy.rows}"
    return None if copy == original else f"{copy.rows} rows, not all the same"
