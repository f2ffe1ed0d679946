"""What the page has seen of the plant's learning: machines, jobs and versions, as the API says them."""

from dataclasses import dataclass, field
from typing import Any

from alarmcast import AsyncClient
from wire.enums import VersionStatus
from wire.rest.jobs import JobView
from wire.rest.machines import Fleet
from wire.rest.models import ModelView
from wire.zones import common_zone

_JOBS = 60  # the newest; older ones are over REST


@dataclass
class LearningState:
    """The newest answers, and whether the last question brought something new."""

    client: AsyncClient
    fleet: Fleet = field(default_factory=lambda: Fleet(machines=[], unregistered=[]))
    jobs: list[JobView] = field(default_factory=list)
    models: list[ModelView] = field(default_factory=list)

    async def look_at_jobs(self) -> bool:
        """Ask for jobs; say whether any of them began, ended or changed its state."""
        before = {job.id: job.state for job in self.jobs}
        self.jobs = (await self.client.jobs.list(limit=_JOBS)).jobs
        return before != {job.id: job.state for job in self.jobs}

    async def look_at_fleet(self) -> bool:
        """Ask for machines; say whether something changed that this page shows of them."""
        before, self.fleet = self.fleet, await self.client.machines.list()
        return _shown(before) != _shown(self.fleet)

    async def look_at_models(self) -> bool:
        """Ask for versions; say whether there is another one, or another one serves."""
        before, self.models = self.models, (await self.client.models.list()).models
        return before != self.models

    @property
    def champion(self) -> ModelView | None:
        """The version that serves."""
        return next((one for one in self.models if one.status is VersionStatus.CHAMPION), None)

    @property
    def zone(self) -> str:
        """The time zone for what is no single machine's: that of most machines."""
        return common_zone(one.time_zone for one in self.fleet.machines)

    def told_jobs(self) -> list[dict[str, Any]]:
        """Return the jobs for the browser, each with the zone of its machine."""
        zones = {(one.site, one.machine): one.time_zone for one in self.fleet.machines}
        return [
            {**job.model_dump(mode="json"), "time_zone": zones.get((job.site, job.machine), self.zone)}
            for job in self.jobs
        ]


def _shown(fleet: Fleet) -> tuple[object, ...]:
    machines = tuple(
        (one.site, one.machine, one.name, one.state, one.reason, one.learned_at) for one in fleet.machines
    )
    return machines, tuple((one.site, one.machine) for one in fleet.unregistered)
