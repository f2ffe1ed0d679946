"""Export stored alarms as CSV."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np

from service.alarm_metrics.activity import read_activity
from service.alarm_metrics.export_store import AlarmExports
from service.errors import InputRejected
from service.machines.catalogue_store import CatalogueStore
from service.machines.event_store import EventStore
from service.machines.models import Machine, MachineReader, chosen_machines
from wire.timestamps import EARLIEST, LATEST, from_us, isoformat, to_us

MAX_READ = 1_000_000  # alarms of a machine whose clears are looked up, the newest
ALARM_COLUMNS = (
    "site",
    "machine",
    "at",
    "plant_time",
    "code",
    "text",
    "severity",
    "received_at",
    "flag",
    "cleared_at",
)


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
    events: EventStore

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
            ended = self._ends(machine, since, until)
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
                    "" if alarm.flag or (end := ended(alarm.at, alarm.code)) is None else isoformat(end),
                )

    def _ends(
        self, machine: Machine, since: datetime, until: datetime
    ) -> Callable[[datetime, int], datetime | None]:
        """Return what tells when an alarm was cleared, if that is known."""
        alarms = read_activity(self.events, machine, since, until, known_until=until, most=MAX_READ).alarms
        found: dict[int, tuple[list[int], ...]] = {}
        if alarms is None:
            return lambda _at, _code: None
        for code in np.unique(alarms.codes).tolist():
            own = alarms.where(alarms.codes == code)
            found[code] = (own.starts.tolist(), own.ends.tolist(), own.ended.tolist())

        def ended(at: datetime, code: int) -> datetime | None:
            starts, ends, is_ended = found.get(code, ([], [], []))
            at_us = to_us(at)
            place = bisect_right(starts, at_us) - 1
            return from_us(ends[place]) if place >= 0 and is_ended[place] and at_us <= ends[place] else None

        return ended
