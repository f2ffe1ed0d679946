"""What keeps an alarm from being told: shelves, maintenance windows, acknowledgements. None touches a feature."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from service.http.principal import Sites
from service.machines.models import Machine
from wire.identity import MachineId


@dataclass(frozen=True)
class ShelvedAlarm:
    """An alarm of one machine that somebody does not want to hear of for a while, in plant time."""

    id: int
    machine: MachineId
    code: int
    start: datetime
    until: datetime
    actor: str
    reason: str
    unshelved_at: datetime | None = None

    @property
    def end(self) -> datetime:
        """When it ended or will end."""
        return self.until if self.unshelved_at is None else min(self.until, self.unshelved_at)

    def is_active(self, at: datetime) -> bool:
        """Say whether the alarm is shelved at a moment; half-open, like every span here."""
        return self.start <= at < self.end


@dataclass(frozen=True)
class MaintenanceWindow:
    """A time in which nothing is told of a machine, or of a whole site, because people work on it."""

    id: int
    site: str
    machine: str | None
    start: datetime
    until: datetime
    actor: str
    reason: str
    cancelled_at: datetime | None = None

    @property
    def end(self) -> datetime:
        """When it ended or will end; a window that was cancelled before it began ends where it began."""
        if self.cancelled_at is None:
            return self.until
        return max(self.start, min(self.until, self.cancelled_at))

    def covers(self, machine: MachineId, at: datetime) -> bool:
        """Say whether a machine is in this window at a moment."""
        concerns = self.site == machine.site and self.machine in {None, machine.machine}
        return concerns and self.start <= at < self.end


@dataclass(frozen=True)
class Acknowledgement:
    """Somebody knows of a likely or raised alarm; it holds until the alarm is no longer likely."""

    id: int
    machine: MachineId
    code: int
    at: datetime
    actor: str
    note: str | None
    notice: int | None = None  # the one that was open
    ended_at: datetime | None = None


@dataclass(frozen=True)
class SuppressionQuery:
    """Which of them are asked for, newest first; with ``holding_at`` only those that hold at that moment."""

    limit: int = 100
    before: int | None = None
    site: str | None = None
    machine: str | None = None
    active_at: datetime | None = None
    sites: Sites = None  # only of these; of every site unless given


class Shelving(Protocol):
    """Alarms that nobody wants to hear of for a while."""

    def add(
        self, machine: Machine, code: int, *, at: datetime, until: datetime, who: str, reason: str
    ) -> ShelvedAlarm: ...
    def get(self, number: int) -> ShelvedAlarm: ...
    def unshelve(self, shelf: ShelvedAlarm, *, at: datetime, who: str, reason: str | None) -> ShelvedAlarm: ...
    def page(self, query: SuppressionQuery) -> list[ShelvedAlarm]: ...
    def active(self, at: datetime) -> list[ShelvedAlarm]: ...
    def between(self, start: datetime, end: datetime) -> list[ShelvedAlarm]: ...


class MaintenancePlan(Protocol):
    """When people work on machines."""

    def add(self, window: MaintenanceWindow, *, at: datetime) -> MaintenanceWindow: ...
    def get(self, number: int) -> MaintenanceWindow: ...
    def cancel(
        self, window: MaintenanceWindow, *, at: datetime, who: str, reason: str | None
    ) -> MaintenanceWindow: ...
    def page(self, query: SuppressionQuery) -> list[MaintenanceWindow]: ...
    def active(self, at: datetime) -> list[MaintenanceWindow]: ...
