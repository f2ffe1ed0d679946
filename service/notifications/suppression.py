"""Suppress notifications: shelve, acknowledge, schedule maintenance. Forecasts and learning are not affected."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from service.alarm_metrics.models import ExcludedSpan
from service.errors import InputRejected, NotFound
from service.machines.models import MachineReader
from service.messaging.bus import ChangeBus, SuppressionChanged
from service.notifications.models import Acknowledgement, MaintenanceWindow, ShelvedAlarm
from service.notifications.suppression_store import AcknowledgementStore, MaintenanceStore, ShelvingStore
from wire.clock import PlantClock
from wire.identity import MachineId
from wire.timestamps import to_us


def require_site_or_machine(machines: MachineReader, site: str, machine: str | None) -> None:
    """Raise :class:`NotFound` unless the machine, or with None any machine of the site, is enrolled."""
    if machine is not None:
        machines.get(MachineId(site, machine))
    elif not any(enrolled.id.site == site for enrolled in machines.all()):
        raise NotFound(f"No machine is enrolled at {site}.")


@dataclass(frozen=True)
class SuppressionService:
    """Publishes ``SuppressionChanged`` after every change."""

    machines: MachineReader
    shelves: ShelvingStore
    windows: MaintenanceStore
    acknowledgements: AcknowledgementStore
    clock: PlantClock
    max_shelving: timedelta
    bus: ChangeBus = field(default_factory=ChangeBus)

    def shelve(
        self, machine: MachineId, code: int, *, until: datetime | timedelta, who: str, reason: str
    ) -> ShelvedAlarm:
        """Shelve an alarm from now on until a moment, or for a duration, in plant time."""
        enrolled = self.machines.get(machine)
        enrolled.require_active()
        now = self.clock.now()
        end = until if isinstance(until, datetime) else now + until
        if end <= now:
            raise InputRejected(f"{end.isoformat()} has passed. Choose an end after {now.isoformat()}.")
        if end - now > self.max_shelving:
            hours = self.max_shelving / timedelta(hours=1)
            raise InputRejected(f"An alarm can be shelved for at most {hours:g} hours.")
        shelved = self.shelves.add(enrolled, code, at=now, until=end, who=who, reason=reason)
        self.bus.publish(SuppressionChanged(*machine))
        return shelved

    def unshelve(self, machine: MachineId, shelf_id: int, *, who: str, reason: str | None) -> ShelvedAlarm:
        """Unshelve an alarm of a machine."""
        self.machines.get(machine)
        shelved = self.shelves.get(shelf_id)
        if shelved.machine != machine:
            raise NotFound(f"{machine} has no shelved alarm {shelf_id}.")
        unshelved = self.shelves.unshelve(shelved, at=self.clock.now(), who=who, reason=reason)
        self.bus.publish(SuppressionChanged(*machine))
        return unshelved

    def shelved(self) -> dict[MachineId, set[int]]:
        """Return the codes that are shelved now, by machine."""
        codes: dict[MachineId, set[int]] = {}
        for shelved in self.shelves.active(self.clock.now()):
            codes.setdefault(shelved.machine, set()).add(shelved.code)
        return codes

    def excluded_spans(self, start: datetime, end: datetime) -> list[ExcludedSpan]:
        """Return the spans in ``[start, end)`` in which shelved alarms are excluded from alarm metrics."""
        return [
            ExcludedSpan(shelved.machine, shelved.code, to_us(shelved.start), to_us(shelved.end))
            for shelved in self.shelves.between(start, end)
        ]

    def acknowledge(self, machine: MachineId, code: int, *, who: str, note: str | None) -> Acknowledgement:
        """Acknowledge an alarm: no new notification while it stays likely."""
        enrolled = self.machines.get(machine)
        enrolled.require_active()
        return self.acknowledgements.add(enrolled, code, at=self.clock.now(), who=who, note=note)

    def schedule_maintenance(self, window: MaintenanceWindow) -> MaintenanceWindow:
        """Store a window; a start in the past becomes now."""
        require_site_or_machine(self.machines, window.site, window.machine)
        now = self.clock.now()
        scheduled = replace(window, start=max(window.start, now))
        if scheduled.until <= scheduled.start:
            raise InputRejected("The window would end before it starts. Choose a later end.")
        stored = self.windows.add(scheduled, at=now)
        self.bus.publish(SuppressionChanged(window.site, window.machine))
        return stored

    def cancel_maintenance(self, window_id: int, *, who: str, reason: str | None) -> MaintenanceWindow:
        """End a window before its time, started or not."""
        ended = self.windows.cancel(self.windows.get(window_id), at=self.clock.now(), who=who, reason=reason)
        self.bus.publish(SuppressionChanged(ended.site, ended.machine))
        return ended
