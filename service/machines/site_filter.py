"""Stores as a request sees them: only the sites of the current user, nothing where there is no user.

Routes get these and not the stores, so that a new route is restricted without further code.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from service.errors import NotFound, unknown_machine
from service.http.principal import can_see, current_sites
from service.machines.models import (
    Agent,
    Machine,
    QuarantinedItem,
    QuarantineQuery,
    ReasonCount,
    UnregisteredMachine,
)
from service.machines.quarantine_store import QuarantineStore
from service.machines.silence import SilenceDetector, SilentMachine
from service.machines.store import MachineStore
from wire.identity import MachineId


@dataclass(frozen=True)
class SiteFilteredMachines:
    """Machines of the user's sites; a machine of another site does not exist."""

    machines: MachineStore

    def get(self, machine: MachineId) -> Machine:
        if not can_see(machine.site):
            raise unknown_machine(machine)
        return _redacted(self.machines.get(machine))

    def find(self, machine: MachineId) -> Machine | None:
        found = self.machines.find(machine) if can_see(machine.site) else None
        return _redacted(found) if found else None

    def all(self, *, retired: bool = False) -> list[Machine]:
        return [_redacted(machine) for machine in self.machines.all(retired=retired) if can_see(machine.id.site)]

    def agents(self) -> dict[MachineId, Agent]:
        return {machine: agent for machine, agent in self.machines.agents().items() if can_see(machine.site)}

    def agent(self, machine: Machine) -> Agent | None:
        return self.machines.agent(machine) if can_see(machine.id.site) else None

    def unregistered(self) -> list[UnregisteredMachine]:
        return [other for other in self.machines.unregistered() if can_see(other.machine.site)]


@dataclass(frozen=True)
class SiteFilteredQuarantine:
    """Quarantined items of the user's machines; items of no machine are for users of all sites."""

    quarantine: QuarantineStore

    def page(self, query: QuarantineQuery) -> list[QuarantinedItem]:
        return self.quarantine.page(replace(query, sites=current_sites()))

    def get(self, number: int) -> QuarantinedItem:
        item = self.quarantine.get(number)
        if current_sites() is not None and (item.machine is None or not can_see(item.machine.site)):
            raise NotFound(f"Nothing is quarantined under number {number}; it may have been replayed.")
        return item

    def reasons(self) -> list[ReasonCount]:
        return self.quarantine.reasons(sites=current_sites())


@dataclass(frozen=True)
class SiteFilteredSilence:
    """The user's machines that are silent."""

    detector: SilenceDetector
    now: Callable[[], datetime]

    def current(self) -> list[SilentMachine]:
        return [silent for silent in self.detector.current(self.now()) if can_see(silent.machine.site)]


def _redacted(machine: Machine) -> Machine:
    return replace(machine, reason=machine.reason.shown_to(current_sites())) if machine.reason else machine
