"""Export stored alarms as CSV."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from service.alarm_metrics.export_store import AlarmExports
from service.errors import InputRejected
from service.machines.catalogue_store import CatalogueStore
from service.machines.models import Machine, MachineReader, chosen_machines
from wire.timestamps import EARLIEST, LATEST, isoformat

ALARM_COLUMNS = ("site", "machine", "at", "plant_time", "code", "text", "severity", "received_at", "flag")


@dataclass(frozen=True)
class ExportQuery:
    """Filter of an export; all alarms by default."""

    site: str | None = None
    machine: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    code: int | None = None


@dataclass(frozen=True)
class AlarmExport:
    """Reads a page at a time, so that memory does not grow with the span."""

    machines: MachineReader
    alarms: AlarmExports
    catalogue: CatalogueStore

    def rows(self, query: ExportQuery) -> Iterator[tuple[object, ...]]:
        """Return the rows by machine and time; raise :class:`InputRejected` before the first row."""
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
                entry = entries[alarm.code]
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
