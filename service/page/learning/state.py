"""The state behind the learning page: machines, jobs and versions as last fetched from the API."""

from dataclasses import dataclass, field
from typing import Any

from alarmcast import AsyncClient
from wire.enums import VersionStatus
from wire.rest.jobs import JobView
from wire.rest.machines import Fleet
from wire.rest.models import ModelView
from wire.zones import common_zone

_SHOWN_JOBS = 60  # newest first; older jobs are available over REST


@dataclass
class LearningState:
    """The last answers of the API."""

    client: AsyncClient
    fleet: Fleet = field(default_factory=lambda: Fleet(machines=[], unregistered=[]))
    jobs: list[JobView] = field(default_factory=list)
    models: list[ModelView] = field(default_factory=list)

    async def fetch_jobs(self) -> None:
        """Fetch the jobs."""
        self.jobs = (await self.client.jobs.list(limit=_SHOWN_JOBS)).jobs

    async def fetch_fleet(self) -> bool:
        """Fetch the machines; return whether something changed that this page shows."""
        before, self.fleet = self.fleet, await self.client.machines.list()
        return _shown(before) != _shown(self.fleet)

    async def fetch_models(self) -> bool:
        """Fetch the versions; return whether they changed."""
        before, self.models = self.models, (await self.client.models.list()).models
        return before != self.models

    @property
    def champion(self) -> ModelView | None:
        """The active version."""
        return next((one for one in self.models if one.status is VersionStatus.CHAMPION), None)

    @property
    def zone(self) -> str:
        """The time zone of most machines."""
        return common_zone(one.time_zone for one in self.fleet.machines)

    def jobs_json(self) -> list[dict[str, Any]]:
        """Return the jobs for the browser, each with the time zone of its machine."""
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
