"""People keep alarms quiet: shelved with an end and a reason, acknowledged, or under maintenance."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from service.alarm_metrics.exclusions import ExcludedSpan
from service.errors import InputRejected, NotFound
from service.machines.models import MachineReader
from service.messaging.bus import ChangeBus, SuppressionChanged
from service.notifications.acknowledgement_store import AcknowledgementStore
from service.notifications.suppression import (
    Acknowledgement,
    MaintenancePlan,
    MaintenanceWindow,
    ShelvedAlarm,
    Shelving,
)
from wire.clock import PlantClock
from wire.identity import MachineId
from wire.timestamps import to_us


@dataclass(frozen=True)
class SuppressionService:
    """Touches notices and figures, never features: nothing that forecasts or learns asks here."""

    machines: MachineReader
    shelves: Shelving
    windows: MaintenancePlan
    acknowledgements: AcknowledgementStore
    clock: PlantClock
    max_shelving: timedelta
    bus: ChangeBus = field(default_factory=ChangeBus)

    def shelve(
        self, machine: MachineId, code: int, *, until: datetime | timedelta, who: str, reason: str
    ) -> ShelvedAlarm:
        """Keep an alarm of a machine quiet from now on, until a moment or for a while, in plant time."""
        known = self.machines.get(machine)
        known.require_active()
        now = self.clock.now()
        end = until if isinstance(until, datetime) else now + until
        if end <= now:
            raise InputRejected(f"{end.isoformat()} has passed; name a moment after {now.isoformat()}.")
        if end - now > self.max_shelving:
            hours = self.max_shelving / timedelta(hours=1)
            raise InputRejected(
                f"An alarm is shelved for at most {hours:g} hours; shelve it again when that is over."
            )
        shelf = self.shelves.add(known, code, at=now, until=end, who=who, reason=reason)
        self.bus.publish(SuppressionChanged(*machine))
        return shelf

    def unshelve(self, machine: MachineId, number: int, *, who: str, reason: str | None) -> ShelvedAlarm:
        """End a machine's shelf before its time."""
        self.machines.get(machine)
        shelf = self.shelves.get(number)
        if shelf.machine != machine:
            raise NotFound(f"There is no shelf {number} of {machine}.")
        lifted = self.shelves.unshelve(shelf, at=self.clock.now(), who=who, reason=reason)
        self.bus.publish(SuppressionChanged(*machine))
        return lifted

    def shelved(self) -> dict[MachineId, set[int]]:
        """Return the shelved codes of every machine that has any now, in one query."""
        found: dict[MachineId, set[int]] = {}
        for one in self.shelves.active(self.clock.now()):
            found.setdefault(one.machine, set()).add(one.code)
        return found

    def excluded_spans(self, start: datetime, end: datetime) -> list[ExcludedSpan]:
        """Return what figures over ``[start, end)`` leave out: alarms raised while they were shelved."""
        return [
            ExcludedSpan(one.machine, one.code, to_us(one.start), to_us(one.end))
            for one in self.shelves.between(start, end)
        ]

    def acknowledge(self, machine: MachineId, code: int, *, who: str, note: str | None) -> Acknowledgement:
        """Note that somebody knows of an alarm, so that nobody is told again while it stays likely."""
        known = self.machines.get(machine)
        known.require_active()
        return self.acknowledgements.add(known, code, at=self.clock.now(), who=who, note=note)

    def schedule_maintenance(self, window: MaintenanceWindow) -> MaintenanceWindow:
        """Keep a machine or a site quiet for a time; one that would have begun before begins now."""
        self._require_target(window.site, window.machine)
        now = self.clock.now()
        begun = replace(window, start=max(window.start, now))
        if begun.until <= begun.start:
            raise InputRejected("The window would end before it begins; name a later until.")
        kept = self.windows.add(begun, at=now)
        self.bus.publish(SuppressionChanged(window.site, window.machine))
        return kept

    def end_maintenance(self, number: int, *, who: str, reason: str | None) -> MaintenanceWindow:
        """End a maintenance window before its time, begun or not."""
        ended = self.windows.cancel(self.windows.get(number), at=self.clock.now(), who=who, reason=reason)
        self.bus.publish(SuppressionChanged(ended.site, ended.machine))
        return ended

    def _require_target(self, site: str, machine: str | None) -> None:
        if machine is not None:
            self.machines.get(MachineId(site, machine))
        elif not any(one.id.site == site for one in self.machines.all()):
            raise NotFound(f"No machine is enrolled at {site}; name a site that has one.")
