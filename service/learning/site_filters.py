"""Restrict jobs, versions and evaluation results to the sites of the current user."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from service.errors import NotFound
from service.forecasts.version import Version
from service.forecasts.version_store import VersionStore
from service.http.message import is_visible
from service.http.principal import can_see, current_sites
from service.learning.evaluation_store import HoldoutStore
from service.learning.job_store import JobStore
from service.learning.job_watch import Follower, JobWatch
from service.learning.models import Job
from service.learning.versions import of_sites, report_for
from wire.identity import MachineId


@dataclass(frozen=True)
class SiteFilteredJobs:
    """Jobs of the machines that the current user may see."""

    jobs: JobStore
    watch: JobWatch

    def get(self, number: int) -> Job:
        """Return a job, or raise as if it did not exist."""
        job = self.jobs.get(number)
        if not can_see(job.machine.site):
            raise NotFound(f"There is no job {number}.")
        return self.shown(job)

    def follow(self, number: int, wake: Callable[[], None]) -> Follower:
        """Follow a job that was read with :meth:`get`."""
        return self.watch.follow(number, wake)

    def shown(self, job: Job) -> Job:
        """Return a job with the message that the current user may read."""
        return replace(job, message=job.message.shown_to(current_sites())) if job.message else job

    def newest(self, *, machine: MachineId | None = None, limit: int = 100) -> list[Job]:
        """Return the latest jobs, newest first."""
        jobs = self.jobs.newest(machine=machine, limit=limit, sites=current_sites())
        return [self.shown(job) for job in jobs]


@dataclass(frozen=True)
class SiteFilteredVersions:
    """Every version belongs to the whole fleet; its report is restricted."""

    versions: VersionStore

    def champion(self) -> Version | None:
        champion = self.versions.champion()
        return _shown_version(champion) if champion else None

    def all(self) -> list[Version]:
        return [_shown_version(version) for version in self.versions.all()]

    def get(self, number: int) -> Version:
        return _shown_version(self.versions.get(number))


@dataclass(frozen=True)
class SiteFilteredHoldouts:
    """Evaluation results on the machines that the current user may see."""

    holdouts: HoldoutStore

    def matrix(self) -> dict[int, dict[str, dict[str, float | None]]]:
        sites = current_sites()
        return {version: of_sites(scores, sites) for version, scores in self.holdouts.matrix().items()}

    def by_code(self, version: int) -> dict[str, list[dict[str, Any]]]:
        return of_sites(self.holdouts.by_code(version), current_sites())


def _shown_version(version: Version) -> Version:
    sites = current_sites()
    learned = tuple(machine for machine in version.learned if is_visible(machine, sites))
    return replace(version, learned=learned, report=report_for(version.report, sites))
