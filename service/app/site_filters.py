"""The ports as the web sees them: each shows whoever asks their own sites and nothing of any other.

The web is given these and not the stores, so that a new route is narrowed without anybody thinking of it. Who asks
stands in the request's context; where nobody asks, there is nothing to be seen.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from service.errors import NotFound
from service.forecasts.version import Version
from service.forecasts.version_store import VersionStore
from service.http.message import is_visible
from service.http.principal import can_see, current_sites, require_site
from service.learning.evaluation_store import HoldoutStore
from service.learning.job import Job
from service.learning.job_store import JobStore
from service.learning.job_watch import Follower, JobWatch
from service.learning.report import of_sites, report_for
from service.machines.models import (
    Machine,
)
from service.notifications.maintenance_store import MaintenanceStore
from service.notifications.models import Notification, NotificationQuery
from service.notifications.shelving_store import ShelvingStore
from service.notifications.store import NotificationStore
from service.notifications.suppression import MaintenanceWindow, ShelvedAlarm, SuppressionQuery
from service.notifications.webhook import Webhook
from service.notifications.webhook_store import WebhookStore
from wire.identity import MachineId


@dataclass(frozen=True)
class SiteFilteredJobs:
    """Jobs of the asker's machines."""

    jobs: JobStore
    watch: JobWatch

    def get(self, number: int) -> Job:
        """Return a job, or raise as if it did not exist."""
        job = self.jobs.get(number)
        if not can_see(job.machine.site):
            raise NotFound(f"There is no job {number}.")
        return _shown_job(job)

    def follow(self, number: int, wake: Callable[[], None]) -> Follower:
        """Return a place from which to follow a job that was found with :meth:`get`."""
        return self.watch.follow(number, wake)

    def shown(self, job: Job) -> Job:
        """Return a job as whoever asks may read it."""
        return _shown_job(job)

    def newest(self, *, machine: MachineId | None = None, limit: int = 100) -> list[Job]:
        """Return the latest jobs, newest first."""
        found = self.jobs.newest(machine=machine, limit=limit, sites=current_sites())
        return [_shown_job(job) for job in found]


@dataclass(frozen=True)
class SiteFilteredVersions:
    """Every version is the whole fleet's; of what it learned only the asker's part is told."""

    versions: VersionStore

    def champion(self) -> Version | None:
        """Return the version that serves."""
        champion = self.versions.champion()
        return _shown_version(champion) if champion else None

    def all(self) -> list[Version]:
        """Return every version, newest first."""
        return [_shown_version(one) for one in self.versions.all()]

    def get(self, number: int) -> Version:
        """Return a version."""
        return _shown_version(self.versions.get(number))


@dataclass(frozen=True)
class SiteFilteredHoldouts:
    """Exams of the asker's machines."""

    exams: HoldoutStore

    def matrix(self) -> dict[int, dict[str, dict[str, float | None]]]:
        """Return what each version got in each machine's exam."""
        return {version: _own(figures) for version, figures in self.exams.matrix().items()}

    def by_code(self, version: int) -> dict[str, list[dict[str, Any]]]:
        """Return what a version got in each machine's exam, code by code."""
        return _own(self.exams.by_code(version))


@dataclass(frozen=True)
class SiteFilteredShelving:
    """Shelves of the asker's machines."""

    shelves: ShelvingStore

    def add(
        self, machine: Machine, code: int, *, at: datetime, until: datetime, who: str, reason: str
    ) -> ShelvedAlarm:
        """Shelve an alarm."""
        require_site(machine.id.site)
        return self.shelves.add(machine, code, at=at, until=until, who=who, reason=reason)

    def get(self, number: int) -> ShelvedAlarm:
        """Return a shelf, or raise as if it did not exist."""
        shelf = self.shelves.get(number)
        if not can_see(shelf.machine.site):
            raise NotFound(f"There is no shelf {number}.")
        return shelf

    def unshelve(self, shelf: ShelvedAlarm, *, at: datetime, who: str, reason: str | None) -> ShelvedAlarm:
        """End a shelf."""
        require_site(shelf.machine.site)
        return self.shelves.unshelve(shelf, at=at, who=who, reason=reason)

    def page(self, query: SuppressionQuery) -> list[ShelvedAlarm]:
        """Return shelves, newest first."""
        return self.shelves.page(replace(query, sites=current_sites()))

    def active(self, at: datetime) -> list[ShelvedAlarm]:
        """Return every shelf that holds at a moment."""
        return [shelf for shelf in self.shelves.active(at) if can_see(shelf.machine.site)]

    def between(self, start: datetime, end: datetime) -> list[ShelvedAlarm]:
        """Return the shelves that held at some time in a span."""
        return [shelf for shelf in self.shelves.between(start, end) if can_see(shelf.machine.site)]


@dataclass(frozen=True)
class SiteFilteredMaintenance:
    """Maintenance windows of the asker's sites."""

    windows: MaintenanceStore

    def add(self, window: MaintenanceWindow, *, at: datetime) -> MaintenanceWindow:
        """Keep a new window."""
        require_site(window.site)
        return self.windows.add(window, at=at)

    def get(self, number: int) -> MaintenanceWindow:
        """Return a window, or raise as if it did not exist."""
        window = self.windows.get(number)
        if not can_see(window.site):
            raise NotFound(f"There is no maintenance window {number}.")
        return window

    def cancel(
        self, window: MaintenanceWindow, *, at: datetime, who: str, reason: str | None
    ) -> MaintenanceWindow:
        """End a window."""
        require_site(window.site)
        return self.windows.cancel(window, at=at, who=who, reason=reason)

    def page(self, query: SuppressionQuery) -> list[MaintenanceWindow]:
        """Return windows, newest first."""
        return self.windows.page(replace(query, sites=current_sites()))

    def active(self, at: datetime) -> list[MaintenanceWindow]:
        """Return every window that a moment lies in."""
        return [window for window in self.windows.active(at) if can_see(window.site)]


@dataclass(frozen=True)
class SiteFilteredNotifications:
    """Notices of the asker's machines."""

    notices: NotificationStore

    def page(self, query: NotificationQuery) -> list[Notification]:
        """Return notices, newest first."""
        return self.notices.page(replace(query, sites=current_sites()))


@dataclass(frozen=True)
class SiteFilteredWebhooks:
    """Webhooks of the asker's sites; one of the whole fleet is for those of all sites."""

    webhooks: WebhookStore

    def add(self, webhook: Webhook, *, who: str, reason: str | None) -> Webhook:
        """Keep a new webhook."""
        require_site(webhook.site)
        return self.webhooks.add(webhook, who=who, reason=reason)

    def all(self) -> list[Webhook]:
        """Return the webhooks, oldest first."""
        return [webhook for webhook in self.webhooks.all() if _is_own(webhook)]

    def get(self, number: int) -> Webhook:
        """Return a webhook, or raise as if it did not exist."""
        webhook = self.webhooks.get(number)
        if not _is_own(webhook):
            raise NotFound(f"There is no webhook {number}.")
        return webhook

    def switch(self, webhook: Webhook, *, enabled: bool, at: datetime, who: str, reason: str | None) -> Webhook:
        """Switch a webhook on or off."""
        require_site(webhook.site)
        return self.webhooks.switch(webhook, enabled=enabled, at=at, who=who, reason=reason)

    def remove(self, webhook: Webhook, *, at: datetime, who: str, reason: str | None) -> None:
        """Forget a webhook."""
        require_site(webhook.site)
        self.webhooks.remove(webhook, at=at, who=who, reason=reason)


def _shown_job(job: Job) -> Job:
    return replace(job, message=job.message.shown_to(current_sites())) if job.message else job


def _shown_version(version: Version) -> Version:
    sites = current_sites()
    learned = tuple(machine for machine in version.learned if is_visible(machine, sites))
    return replace(version, learned=learned, report=report_for(version.report, sites))


def _own(figures: dict[str, Any]) -> dict[str, Any]:
    return of_sites(figures, current_sites())


def _is_own(webhook: Webhook) -> bool:
    return current_sites() is None or (webhook.site is not None and can_see(webhook.site))
