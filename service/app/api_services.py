"""The API's parts, taken from the running whole and narrowed to what an asker may see."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.auth.audit_store import AuditStore
from service.auth.login import LoginService
from service.auth.users import UserService
from service.broker_access.service import CredentialService
from service.forecasts.cache import ForecastCache
from service.forecasts.explanation import ExplanationService
from service.forecasts.fleet import FleetDependencies, FleetService
from service.forecasts.service import ForecastService
from service.forecasts.streams import StreamHub
from service.http.health import Health
from service.http.principal import can_see as asker_sees
from service.http.principal import current_sites
from service.ingest.build import time_policy
from service.ingest.quarantine_replay import QuarantineReplay
from service.learning.build import LearningRoutes
from service.learning.enrolment_api import EnrolmentServices
from service.learning.site_filters import SiteFilteredHoldouts, SiteFilteredJobs, SiteFilteredVersions
from service.learning.versions import VersionService
from service.machines.catalogue_store import CatalogueStore
from service.machines.event_store import EventStore
from service.machines.hourly_counts_store import HourlyCountStore
from service.machines.site_filter import SiteFilteredMachines, SiteFilteredQuarantine, SiteFilteredSilence
from service.messaging.bus import HistoryLoaded
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
    fleet: FleetService
    streams: StreamHub
    condition: Callable[[], SystemStatus]
    notifications: Notifications
    sign_in: LoginService
    people: UserService
    audit: AuditStore
    metrics: Callable[[], bytes]


def parts_of(service: "Service") -> AppServices:
    """Return what the web layer is given."""
    stores, settings, clock = service.stores, service.settings, service.clock
    seen, quarantine = SiteFilteredMachines(stores.machines), SiteFilteredQuarantine(service.machines.quarantine)
    return AppServices(
        settings=settings,
        machines=seen,
        log=stores.events,
        catalogue=stores.catalogue,
        desk=service.forecasts.service,
        newest=service.forecasts.cache,
        explanations=service.forecasts.explanations,
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
                on_history_loaded=lambda machine: service.bus.publish(HistoryLoaded(machine)),
            ),
            versions=SiteFilteredVersions(stores.versions),
            holdouts=SiteFilteredHoldouts(stores.exams),
            version_service=VersionService(stores.versions, clock),
            catalogue=stores.catalogue,
            streams=service.forecasts.streams,
        ),
        credentials=service.credentials,
        scoring=service.scoring,
        quarantine=quarantine,
        replay=QuarantineReplay(
            quarantine, stores.events, service.machines.cache, clock, time_policy(settings), service.bus
        ),
        silence=SiteFilteredSilence(service.machines.silence, service.clock.now),
        fleet=_board(service),
        streams=service.forecasts.streams,
        condition=lambda: service.condition.read(current_sites()),
        notifications=service.notifications,
        sign_in=service.auth.login,
        people=service.auth.users,
        audit=stores.audit,
        metrics=service.metrics.text,
    )


def _board(service: "Service") -> FleetService:
    sources = FleetDependencies(
        machines=service.stores.machines,
        strips=HourlyCountStore(service.stores.database),
        catalogue=service.stores.catalogue,
        champion=service.forecasts.service.champion,
        newest=service.forecasts.cache,
        silence=service.machines.silence,
        clock=service.clock,
        stale_after=service.settings.stale_after,
        shelved=service.notifications.suppression.shelved,
    )
    return FleetService(sources, token=secrets.token_hex(4))
