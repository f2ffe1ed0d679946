"""The API's parts, taken from the running whole and narrowed to what an asker may see."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from service.alarm_metrics.csv_export import AlarmExport
from service.alarm_metrics.export_store import AlarmExports
from service.alarm_metrics.service import AlarmMetricsService
from service.alarm_metrics.timeline import TimelineService
from service.app.site_filters import (
    SiteFilteredHoldouts,
    SiteFilteredJobs,
    SiteFilteredMaintenance,
    SiteFilteredNotifications,
    SiteFilteredShelving,
    SiteFilteredVersions,
    SiteFilteredWebhooks,
)
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
from service.learning.enrolment_service import EnrolmentService
from service.learning.history_import import HistoryImporter
from service.learning.versions import VersionService
from service.machines.catalogue_store import CatalogueStore
from service.machines.event_store import EventStore
from service.machines.hourly_counts_store import HourlyCountStore
from service.machines.site_filter import SiteFilteredMachines, SiteFilteredQuarantine, SiteFilteredSilence
from service.messaging.bus import HistoryLoaded
from service.notifications.notification_list import NotificationList
from service.notifications.suppression_service import SuppressionService
from service.notifications.webhook_service import WebhookService
from service.notifications.webhook_store import WebhookStore
from service.scoring.scoreboard import Scoreboard
from wire.clock import PlantClock
from wire.identity import MachineId
from wire.rest.health import SystemStatus

if TYPE_CHECKING:
    from service.app.service import Service


@dataclass(frozen=True)
class AppServices:
    """Everything a request may need; what is of sites comes as a scoped view, and mypy takes nothing else."""

    machines: SiteFilteredMachines
    log: EventStore
    catalogue: CatalogueStore
    desk: ForecastService
    newest: ForecastCache
    explanations: ExplanationService
    clock: PlantClock
    health: Callable[[], Health]  # of what the asker may see, as is `condition`
    enrolment: EnrolmentService
    credentials: CredentialService
    jobs: SiteFilteredJobs
    versions: SiteFilteredVersions
    version_desk: VersionService
    exams: SiteFilteredHoldouts
    history: HistoryImporter
    loaded: Callable[[MachineId], None]  # told of a machine whose past was loaded
    scoreboard: Scoreboard
    quarantine: SiteFilteredQuarantine
    replay: QuarantineReplay
    silence: SiteFilteredSilence
    fleet: FleetService
    streams: StreamHub
    condition: Callable[[], SystemStatus]
    figures: AlarmMetricsService
    timelines: TimelineService
    export: AlarmExport
    hush: SuppressionService
    notices: NotificationList
    webhooks: WebhookService
    sign_in: LoginService
    people: UserService
    audit: AuditStore
    metrics: Callable[[], bytes]


def parts_of(service: "Service") -> AppServices:
    """Return what the web layer is given."""
    stores, settings, clock = service.stores, service.settings, service.clock
    seen, quarantine = SiteFilteredMachines(stores.machines), SiteFilteredQuarantine(service.machines.quarantine)
    return AppServices(
        machines=seen,
        log=stores.events,
        catalogue=stores.catalogue,
        desk=service.forecasts.service,
        newest=service.forecasts.cache,
        explanations=service.forecasts.explanations,
        clock=clock,
        health=lambda: service.health(asker_sees),
        enrolment=service.enrolment,
        credentials=service.credentials,
        jobs=SiteFilteredJobs(stores.jobs, service.job_watch),
        versions=SiteFilteredVersions(stores.versions),
        version_desk=VersionService(stores.versions, clock),
        exams=SiteFilteredHoldouts(stores.exams),
        history=service.history,
        loaded=lambda machine: service.bus.publish(HistoryLoaded(machine)),
        scoreboard=Scoreboard(seen, stores.outcomes, clock, service.scoring.grace),
        quarantine=quarantine,
        replay=QuarantineReplay(
            quarantine, stores.events, service.machines.cache, clock, time_policy(settings), service.bus
        ),
        silence=SiteFilteredSilence(service.machines.silence, service.clock.now),
        fleet=_board(service),
        streams=service.forecasts.streams,
        condition=lambda: service.condition.read(current_sites()),
        figures=AlarmMetricsService(
            seen, stores.events, clock, settings.shift_starts, service.hush.excluded_spans
        ),
        timelines=TimelineService(seen, stores.events, clock),
        export=AlarmExport(seen, AlarmExports(stores.database), stores.catalogue),
        hush=replace(
            service.hush,
            machines=seen,
            shelves=SiteFilteredShelving(service.notify.shelves),
            windows=SiteFilteredMaintenance(service.notify.windows),
        ),
        notices=NotificationList(
            SiteFilteredNotifications(service.notify.notices), service.notify.acknowledgements, service.deliveries
        ),
        webhooks=WebhookService(
            seen, SiteFilteredWebhooks(WebhookStore(stores.database)), service.post, clock, service.post.receivers
        ),
        sign_in=service.gatehouse.sign_in,
        people=service.gatehouse.people,
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
        shelved=service.hush.shelved,
    )
    return FleetService(sources, token=secrets.token_hex(4))
