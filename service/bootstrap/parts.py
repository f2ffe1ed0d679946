"""The API's parts, taken from the running whole and narrowed to what an asker may see."""

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING

from service.bootstrap.configuration import time_policy
from service.core.principal import can_see as asker_sees
from service.core.principal import current_sites
from service.flows.explain import ExplanationService
from service.flows.export import AlarmExport
from service.flows.figures import AlarmMetricsService
from service.flows.fleet import FleetDependencies, FleetOverview
from service.flows.notice_board import NotificationList
from service.flows.replay import QuarantineReplay
from service.flows.scoped import (
    SiteFilteredBus,
    SiteFilteredFleet,
    SiteFilteredHoldouts,
    SiteFilteredJobs,
    SiteFilteredMachines,
    SiteFilteredMaintenance,
    SiteFilteredNotifications,
    SiteFilteredQuarantine,
    SiteFilteredShelving,
    SiteFilteredSilence,
    SiteFilteredVersions,
    SiteFilteredWebhooks,
)
from service.flows.scoreboard import Scoreboard
from service.flows.timeline import TimelineService
from service.flows.versions import VersionService
from service.flows.webhooks import WebhookService
from service.store.exports import AlarmExports
from service.store.strips import HourlyCountStore
from service.store.webhooks import WebhookStore
from service.web.parts import AppServices

if TYPE_CHECKING:
    from service.bootstrap.service import Service


def parts_of(service: "Service") -> AppServices:
    """Return what the web layer is given."""
    stores, settings, clock = service.stores, service.settings, service.clock
    seen, quarantine = SiteFilteredMachines(stores.machines), SiteFilteredQuarantine(service.quarantine)
    return AppServices(
        machines=seen,
        log=stores.events,
        catalogue=stores.catalogue,
        desk=service.desk,
        newest=service.newest,
        explanations=ExplanationService(service.desk, service.newest),
        clock=clock,
        health=lambda: service.health(asker_sees),
        enrolment=service.enrolment,
        credentials=service.credentials,
        jobs=SiteFilteredJobs(stores.jobs, service.job_watch),
        versions=SiteFilteredVersions(stores.versions),
        version_desk=VersionService(stores.versions, clock),
        exams=SiteFilteredHoldouts(stores.exams),
        history=service.history,
        loaded=service.on_history_loaded,
        scoreboard=Scoreboard(seen, stores.outcomes, clock, service.scoring.grace),
        quarantine=quarantine,
        replay=QuarantineReplay(
            quarantine, stores.events, service.registry, clock, time_policy(settings), service.on_events_stored
        ),
        silence=SiteFilteredSilence(service.silence, service.clock.now),
        fleet=SiteFilteredFleet(_board(service)),
        feed=SiteFilteredBus(service.feed),
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
        shelved=service.hush.shelved,
    )
    return FleetOverview(sources, token=secrets.token_hex(4))
