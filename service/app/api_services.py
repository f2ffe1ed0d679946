"""The API's parts, taken from the running whole and narrowed to what an asker may see."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.app.configuration import time_policy
from service.app.site_filters import (
    SiteFilteredBus,
    SiteFilteredFleet,
    SiteFilteredMachines,
    SiteFilteredQuarantine,
    SiteFilteredSilence,
)
from service.auth.audit_store import AuditStore
from service.auth.login import LoginService
from service.auth.users import UserService
from service.broker_access.service import CredentialService
from service.forecasts.cache import ForecastCache
from service.forecasts.explanation import ExplanationService
from service.forecasts.fleet import FleetDependencies, FleetOverview
from service.forecasts.service import ForecastService
from service.http.health import Health
from service.http.principal import can_see as asker_sees
from service.http.principal import current_sites
from service.ingest.quarantine_replay import QuarantineReplay
from service.learning.build import LearningRoutes
from service.learning.enrolment_api import EnrolmentServices
from service.learning.site_filters import SiteFilteredHoldouts, SiteFilteredJobs, SiteFilteredVersions
from service.learning.versions import VersionService
from service.machines.catalogue_store import CatalogueStore
from service.machines.event_store import EventStore
from service.machines.hourly_counts_store import HourlyCountStore
from service.notifications.build import Notifications
from service.scoring.build import Scoring
from service.settings import Settings
from wire.clock import PlantClock
from wire.rest.health import SystemStatus

if TYPE_CHECKING:
    from service.app.service import Service


@dataclass(frozen=True)
class AppServices:
    """Everything a request may need; what is of sites comes as a scoped view, and mypy takes nothing else."""

    settings: Settings
    machines: SiteFilteredMachines
    log: EventStore
    catalogue: CatalogueStore
    desk: ForecastService
    newest: ForecastCache
    explanations: ExplanationService
    clock: PlantClock
    health: Callable[[], Health]  # of what the asker may see, as is `condition`
    learning: LearningRoutes
    credentials: CredentialService
    scoring: Scoring
    quarantine: SiteFilteredQuarantine
    replay: QuarantineReplay
    silence: SiteFilteredSilence
    fleet: SiteFilteredFleet
    feed: SiteFilteredBus
    condition: Callable[[], SystemStatus]
    notifications: Notifications
    sign_in: LoginService
    people: UserService
    audit: AuditStore
    metrics: Callable[[], bytes]


def parts_of(service: "Service") -> AppServices:
    """Return what the web layer is given."""
    stores, settings, clock = service.stores, service.settings, service.clock
    seen, quarantine = SiteFilteredMachines(stores.machines), SiteFilteredQuarantine(service.quarantine)
    feed = SiteFilteredBus(service.feed)
    return AppServices(
        settings=settings,
        machines=seen,
        log=stores.events,
        catalogue=stores.catalogue,
        desk=service.desk,
        newest=service.newest,
        explanations=ExplanationService(service.desk, service.newest),
        clock=clock,
        health=lambda: service.health(asker_sees),
        learning=LearningRoutes(
            enrolment=EnrolmentServices(
                enrolment=service.enrolment,
                machines=seen,
                jobs=SiteFilteredJobs(stores.jobs, service.job_watch),
                credentials=service.credentials,
                history=service.history,
                audit=stores.audit,
                clock=clock,
                on_history_loaded=service.on_history_loaded,
            ),
            versions=SiteFilteredVersions(stores.versions),
            holdouts=SiteFilteredHoldouts(stores.exams),
            version_service=VersionService(stores.versions, clock),
            catalogue=stores.catalogue,
            streams=feed,
        ),
        credentials=service.credentials,
        scoring=service.scoring,
        quarantine=quarantine,
        replay=QuarantineReplay(
            quarantine, stores.events, service.registry, clock, time_policy(settings), service.on_events_stored
        ),
        silence=SiteFilteredSilence(service.silence, service.clock.now),
        fleet=SiteFilteredFleet(_board(service)),
        feed=feed,
        condition=lambda: service.condition.read(current_sites()),
        notifications=service.notifications,
        sign_in=service.auth.login,
        people=service.auth.users,
        audit=stores.audit,
        metrics=service.metrics.text,
    )


def _board(service: "Service") -> FleetOverview:
    sources = FleetDependencies(
        machines=service.stores.machines,
        strips=HourlyCountStore(service.stores.database),
        catalogue=service.stores.catalogue,
        champion=service.desk.champion,
        newest=service.newest,
        silence=service.silence,
        clock=service.clock,
        stale_after=service.settings.stale_after,
        shelved=service.notifications.suppression.shelved,
    )
    return FleetOverview(sources, token=secrets.token_hex(4))
