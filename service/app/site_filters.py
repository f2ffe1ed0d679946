"""The ports as the web sees them: each shows whoever asks their own sites and nothing of any other.

The web is given these and not the stores, so that a new route is narrowed without anybody thinking of it. Who asks
stands in the request's context; where nobody asks, there is nothing to be seen.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from service.errors import NotFound, unknown_machine
from service.forecasts.fleet import FleetOverview, FleetSnapshot
from service.http.principal import can_see, current_sites, current_user
from service.machines.models import Agent, Machine, UnregisteredMachine
from service.machines.quarantine import QuarantinedItem, QuarantineQuery, ReasonCount
from service.machines.quarantine_store import QuarantineStore
from service.machines.silence_detector import SilenceDetector, SilentMachine
from service.machines.store import MachineStore
from service.messaging.pubsub import EventBus, Filter, Subscription
from wire.identity import MachineId


@dataclass(frozen=True)
class SiteFilteredMachines:
    """Machines of the asker's sites; another site's does not exist."""

    machines: MachineStore

    def get(self, machine: MachineId) -> Machine:
        """Return a machine, or raise as if it did not exist."""
        if not can_see(machine.site):
            raise unknown_machine(machine)
        return _shown_machine(self.machines.get(machine))

    def find(self, machine: MachineId) -> Machine | None:
        """Return a machine, or None."""
        found = self.machines.find(machine) if can_see(machine.site) else None
        return _shown_machine(found) if found else None

    def all(self, *, retired: bool = False) -> list[Machine]:
        """Return the machines, by site and name."""
        return [_shown_machine(one) for one in self.machines.all(retired=retired) if can_see(one.id.site)]

    def agents(self) -> dict[MachineId, Agent]:
        """Return how their agents were when last heard."""
        return {machine: agent for machine, agent in self.machines.agents().items() if can_see(machine.site)}

    def agent(self, machine: Machine) -> Agent | None:
        """Return how one machine's agent was when last heard."""
        return self.machines.agent(machine) if can_see(machine.id.site) else None

    def unregistered(self) -> list[UnregisteredMachine]:
        """Return who knocks at the asker's sites."""
        return [knock for knock in self.machines.unregistered() if can_see(knock.machine.site)]


@dataclass(frozen=True)
class SiteFilteredQuarantine:
    """What was refused of the asker's machines; what belongs to no machine is for those of all sites."""

    quarantine: QuarantineStore

    def page(self, query: QuarantineQuery) -> list[QuarantinedItem]:
        """Return items, newest first."""
        return self.quarantine.page(replace(query, sites=current_sites()))

    def get(self, number: int) -> QuarantinedItem:
        """Return one item, or raise as if it did not exist."""
        item = self.quarantine.get(number)
        mine = current_sites() is None or (item.machine is not None and can_see(item.machine.site))
        if not mine:
            raise NotFound(f"Nothing is quarantined under number {number}; it may have been replayed.")
        return item

    def reasons(self) -> list[ReasonCount]:
        """Return how much was refused for which reason, most first."""
        return self.quarantine.reasons(sites=current_sites())


@dataclass(frozen=True)
class SiteFilteredSilence:
    """The asker's machines that are silent."""

    watch: SilenceDetector
    now: Callable[[], datetime]

    @property
    def found(self) -> list[SilentMachine]:
        """The machines that are silent now."""
        return [one for one in self.watch.current(self.now()) if can_see(one.machine.site)]


@dataclass(frozen=True)
class SiteFilteredFleet:
    """The asker's cards."""

    board: FleetOverview

    def overview(self, *, site: str | None = None, since: str | None = None) -> FleetSnapshot:
        """Return the fleet, or only what changed since a revision."""
        return self.board.overview(site=site, since=since, sites=current_sites())


@dataclass(frozen=True)
class SiteFilteredBus:
    """What happens at the asker's sites."""

    feed: EventBus

    def subscribe(self, wish: Filter, wake: Callable[[], None]) -> Subscription:
        """Return a place to listen from."""
        return self.feed.subscribe(replace(wish, sites=current_sites(), owner=_owner()), wake)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place among the streams, for one that is not subscribed to the feed."""
        owner = _owner()
        self.feed.take_place(owner)
        try:
            yield
        finally:
            self.feed.give_place_back(owner)

    @property
    def closed(self) -> bool:
        """Whether nothing more will come."""
        return self.feed.closed

    @property
    def ping(self) -> float:
        """Seconds after which a silent stream says that it is still there."""
        return self.feed.ping


def _owner() -> str | None:
    """Return whose streams are counted by name: everybody's but the service's own."""
    principal = current_user()
    return None if principal is None or principal.is_own else principal.name


def _shown_machine(machine: Machine) -> Machine:
    return replace(machine, reason=machine.reason.shown_to(current_sites())) if machine.reason else machine
