"""The alarm catalogue of the fleet."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from service.auth.audit_store import record_request
from service.database.dialect import insert_new, write_alone
from service.database.engine import Database
from service.database.tables import catalogue
from service.errors import Conflict
from service.machines.catalogue import Catalogue, CatalogueChange, CatalogueEntry, described
from service.machines.models import ExcessKind
from wire.enums import EntryOrigin
from wire.events import CodeDescription
from wire.rest.catalogue import AlarmResponse

CHANGE, EDIT = "add to catalogue", "edit catalogue"  # in the audit log
RESPONSE = tuple(AlarmResponse.model_fields)  # columns
_CACHE_TTL_S = 1.0  # a change by another process is seen after so long


@dataclass
class CatalogueStore:
    """One meaning per code for the whole fleet."""

    database: Database
    _known: Catalogue | None = None
    _read_at: float = 0.0

    def entries(self) -> Catalogue:
        """Return the catalogue, cached for a second because every forecast needs it."""
        known = self._known
        if known is None or time.monotonic() - self._read_at > _CACHE_TTL_S:
            with self.database.read() as connection:
                known = self._known = _entries(connection)
            self._read_at = time.monotonic()
        return known

    def merge(self, entries: Iterable[CatalogueEntry]) -> int:
        """Add entries and return how many are new; a code that means something else already is a conflict.

        Severity, target and response may be changed; a text may not, or one code would mean two things in one
        fleet, unless it is a machine's. A part of the response that an entry does not state (None) is kept.
        """
        with self.database.write() as connection:
            change = merge_into(connection, entries)
            record_request(connection, action=CHANGE, subject=str(change))
        self._known = None
        return len(change.new)

    def put(self, entry: CatalogueEntry) -> None:
        """Add or replace one code, its text included."""
        with self.database.write() as connection:
            write_alone(connection, catalogue)
            is_known = catalogue.c.code == entry.code
            if not connection.execute(update(catalogue).where(is_known).values(**_row(entry))).rowcount:
                connection.execute(insert(catalogue).values(**_row(entry)))
            record_request(connection, action=EDIT, subject=f"{entry.code} {entry.text}")
        self._known = None


def merge_into(connection: Connection, entries: Iterable[CatalogueEntry]) -> CatalogueChange:
    """Add entries inside a transaction and return what that changed for the whole fleet."""
    write_alone(connection, catalogue)
    known = _entries(connection)
    new, changed = [], []
    for entry in entries:
        before = known.get(entry.code)
        if before is None:
            new.append(entry.code)
            connection.execute(insert(catalogue).values(**_row(entry)))
            continue
        if before.text != entry.text and before.origin is EntryOrigin.ADMIN:
            raise Conflict(
                f"Code {entry.code} already means {before.text!r} in this fleet, not {entry.text!r}. A code means "
                "the same for every machine: correct its text in the catalogue, or give the machine another code."
            )
        stated = entry.response.model_dump(exclude_none=True)
        row = _row(replace(entry, response=before.response.model_copy(update=stated)))
        if row != _row(before):
            row["origin"] = EntryOrigin.ADMIN.value
            changed.append(entry.code)
            connection.execute(update(catalogue).where(catalogue.c.code == entry.code).values(**row))
    return CatalogueChange(tuple(new), tuple(changed))


def describe_codes(
    connection: Connection, codes: Sequence[tuple[int, CodeDescription]], *, most: int
) -> Counter[tuple[int, ExcessKind]]:
    """Add unknown codes that machines describe; return how many were above the limit, by machine."""
    left_out: Counter[tuple[int, ExcessKind]] = Counter()
    used: dict[int, int] = {}
    for machine, code in sorted(codes, key=lambda pair: (pair[1].code, pair[0])):  # in one order: no deadlocks
        if connection.execute(select(catalogue.c.code).where(catalogue.c.code == code.code)).scalar() is not None:
            continue
        if machine not in used:
            count = select(func.count()).where(catalogue.c.described_by == machine)
            used[machine] = connection.execute(count).scalar_one()
        if used[machine] >= most:
            left_out[machine, ExcessKind.CODES] += 1
            continue
        row = {**_row(described(code)), "described_by": machine}
        connection.execute(insert_new(connection, catalogue, row))
        used[machine] += 1
    return left_out


def response_of(row: Row[Any]) -> AlarmResponse:
    """Return the alarm response in a row that holds the columns of the catalogue."""
    return AlarmResponse.model_construct(**{name: getattr(row, name) for name in RESPONSE})


def _entries(connection: Connection) -> Catalogue:
    rows = connection.execute(select(catalogue).order_by(catalogue.c.code))
    return Catalogue((row.code, _entry(row)) for row in rows)


def _entry(row: Row[Any]) -> CatalogueEntry:
    origin = EntryOrigin(row.origin)
    return CatalogueEntry(row.code, row.text, row.severity, row.target, response_of(row), origin)


def _row(entry: CatalogueEntry) -> dict[str, object]:
    """Return the values of a row; an empty part of the response is null."""
    response = {name: value or None for name, value in entry.response.model_dump().items()}
    return {
        "code": entry.code,
        "text": entry.text,
        "severity": entry.severity,
        "target": entry.target,
        "origin": entry.origin.value,
        "described_by": None,
        **response,
    }
