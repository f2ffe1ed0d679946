"""The alarm catalogue of the fleet."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update

from service.core.catalogue import CatalogueEntry
from service.errors import Conflict
from service.store.audit import note_asked
from service.store.dialect import write_alone
from service.store.engine import Database
from service.store.tables import catalogue

_REMEMBER = 1.0  # seconds: how soon a change by another process is seen


@dataclass
class CatalogueStore:
    """One meaning per code for the whole fleet."""

    database: Database
    _known: dict[int, CatalogueEntry] | None = None
    _read_at: float = 0.0

    def entries(self) -> dict[int, CatalogueEntry]:
        """Return every known code's entry; every forecast asks, so the answer is remembered for a second."""
        if self._known is None or time.monotonic() - self._read_at > _REMEMBER:
            self._known, self._read_at = self._read(), time.monotonic()
        return self._known

    def _read(self) -> dict[int, CatalogueEntry]:
        with self.database.read() as connection:
            rows = connection.execute(select(catalogue).order_by(catalogue.c.code))
            return {row.code: CatalogueEntry(row.code, row.text, row.severity, row.target) for row in rows}

    def merge(self, entries: Iterable[CatalogueEntry]) -> int:
        """Add entries and return how many are new; a code that means something else already is a conflict.

        Severity and target may be changed; a text may not, or one code would mean two things in one fleet.
        """
        with self.database.write() as connection:
            new = merge_into(connection, entries)
            note_asked(connection, action="add to catalogue", subject=f"{new} new codes")
        self._known = None
        return new


def merge_into(connection: Connection, entries: Iterable[CatalogueEntry]) -> int:
    """Add entries inside a transaction and return how many are new."""
    write_alone(connection, catalogue)
    new = 0
    known = {row.code: row.text for row in connection.execute(select(catalogue.c.code, catalogue.c.text))}
    for entry in entries:
        if entry.code not in known:
            new += 1
            connection.execute(insert(catalogue).values(**_row(entry)))
        elif known[entry.code] != entry.text:
            raise Conflict(
                f"Code {entry.code} already means {known[entry.code]!r} in this fleet, not {entry.text!r}."
            )
        else:
            changed = {"severity": entry.severity, "target": entry.target}
            connection.execute(update(catalogue).where(catalogue.c.code == entry.code).values(**changed))
    return new


def _row(entry: CatalogueEntry) -> dict[str, object]:
    return {"code": entry.code, "text": entry.text, "severity": entry.severity, "target": entry.target}
