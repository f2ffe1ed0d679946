"""Stored alarms to lines of CSV, one after the other; a spreadsheet may open them without harm."""

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from zoneinfo import ZoneInfo

from service.alarm_metrics.export_store import AlarmExports
from service.errors import InputRejected
from service.machines.catalogue import CatalogueEntry, unknown_code
from service.machines.catalogue_store import CatalogueStore
from service.machines.models import Machine, MachineReader, chosen_machines
from wire.timestamps import EARLIEST, LATEST, isoformat

ALARM_COLUMNS = ("site", "machine", "at", "plant_time", "code", "text", "severity", "received_at", "flag")
_LINES_A_CHUNK = 500
# What a spreadsheet would take for a formula, and what it skips before looking for one.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")


def harmless(text: str) -> str:
    """Return words that a spreadsheet shows as they are: an apostrophe goes before what would be a formula."""
    return f"'{text}" if text.startswith(_FORMULAS) else text


def csv_chunks(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Yield CSV after RFC 4180, head first, some hundred lines at a time; words are made harmless."""
    lines = iter(rows)
    chunk: list[Iterable[object]] = [columns]
    while chunk:
        written = io.StringIO()
        writer = csv.writer(written)
        for row in chunk:
            writer.writerow([harmless(cell) if isinstance(cell, str) else cell for cell in row])
        yield written.getvalue()
        chunk = list(islice(lines, _LINES_A_CHUNK))


@dataclass(frozen=True)
class ExportQuery:
    """Which alarms are wanted; all there are unless told otherwise."""

    site: str | None = None
    machine: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    code: int | None = None


@dataclass(frozen=True)
class AlarmExport:
    """Reads a page at a time, so an export of years needs as little memory as one of an hour."""

    machines: MachineReader
    alarms: AlarmExports
    catalogue: CatalogueStore

    def rows(self, query: ExportQuery) -> Iterator[tuple[object, ...]]:
        """Return the rows of an export, machine by machine; a wrong question is refused before the first."""
        since, until = query.since or EARLIEST, query.until or LATEST
        if since >= until:
            raise InputRejected("since must be before until.")
        machines = chosen_machines(self.machines, query.site, query.machine)
        return self._rows(machines, since, until, query.code)

    def _rows(
        self, machines: list[Machine], since: datetime, until: datetime, code: int | None
    ) -> Iterator[tuple[object, ...]]:
        entries = self.catalogue.entries()
        for machine in machines:
            zone = ZoneInfo(machine.time_zone)
            for alarm in self.alarms.alarms(machine, since, until, code=code):
                entry: CatalogueEntry = entries.get(alarm.code) or unknown_code(alarm.code)
                yield (
                    machine.id.site,
                    machine.id.machine,
                    isoformat(alarm.at),
                    alarm.at.astimezone(zone).isoformat(timespec="milliseconds"),
                    alarm.code,
                    entry.text,
                    entry.severity,
                    isoformat(alarm.received_at),
                    alarm.flag or "",
                )
