"""The API's parts, taken from the running whole and narrowed to what an asker may see."""

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING

from service.bootstrap.configuration import time_policy
from service.core.principal import sees as asker_sees
from service.core.principal import sites_asked
from service.flows.explain import ExplanationDesk
from service.flows.export import AlarmExport
from service.flows.figures import FiguresDesk
from service.flows.fleet import FleetBoard, Sources
from service.flows.notice_board import NoticeBoard
from service.flows.replay import Replay
from service.flows.scoped import (
    ScopedExams,
    ScopedFeed,
    ScopedFleet,
    ScopedJobs,
    ScopedMachines,
    ScopedNotices,
    ScopedQuarantine,
    ScopedShelves,
    ScopedSilence,
    ScopedVersions,
    ScopedWebhooks,
    ScopedWindows,
)
from service.flows.scoreboard import Scoreboard
from service.flows.timeline import TimelineDesk
from service.flows.versions import VersionDesk
from service.flows.webhooks import WebhookDesk
from service.store.exports import AlarmExports
from service.store.strips import StripStore
from service.store.webhooks import WebhookStore
from service.web.parts import Parts

if TYPE_CHECKING:
    from service.bootstrap.service import Service


def parts_of(service: "Service") -> Parts:
    """Return what the web layer is given."""
    stores, settings, clock = service.stores, service.settings, service.clock
    seen, quarantine = ScopedMachines(stores.machines), ScopedQuarantine(service.quarantine)
    return Parts(
        machines=seen,
        log=stores.events,
        catalogue=stores.catalogue,
        desk=service.desk,
        newest=service.newest,
        explanations=ExplanationDesk(service.desk, service.newest),
        clock=clock,
        health=lambda: service.health(asker_sees),
        enrolment=service.enrolment,
        credentials=service.credentials,
        jobs=ScopedJobs(stores.jobs, service.job_watch),
        versions=ScopedVersions(stores.versions),
        version_desk=VersionDesk(stores.versions, clock),
        exams=ScopedExams(stores.exams),
        history=service.history,
        loaded=service.loaded,
        scoreboard=Scoreboard(seen, stores.outcomes, clock, service.scoring.grace),
        quarantine=quarantine,
        replay=Replay(quarantine, stores.events, service.registry, clock, time_policy(settings), service.touched),
        silence=ScopedSilence(service.silence, service.clock.now),
        fleet=ScopedFleet(_board(service)),
        feed=ScopedFeed(service.feed),
        condition=lambda: service.condition.look(sites_asked()),
        figures=FiguresDesk(seen, stores.events, clock, settings.shift_starts, service.hush.left_out),
        timelines=TimelineDesk(seen, stores.events, clock),
        export=AlarmExport(seen, AlarmExports(stores.database), stores.catalogue),
        hush=replace(
            service.hush,
            machines=seen,
            shelves=ScopedShelves(service.notify.shelves),
            windows=ScopedWindows(service.notify.windows),
        ),
        notices=NoticeBoard(
            ScopedNotices(service.notify.notices), service.notify.acknowledgements, service.deliveries
        ),
        webhooks=WebhookDesk(
            seen, ScopedWebhooks(WebhookStore(stores.database)), service.post, clock, service.post.receivers
        ),
        sign_in=service.gatehouse.sign_in,
        people=service.gatehouse.people,
        audit=stores.audit,
        metrics=service.metrics.text,
    )


def _board(service: "Service") -> FleetBoard:
    sources = Sources(
        machines=service.stores.machines,
        strips=StripStore(service.stores.database),
        catalogue=service.stores.catalogue,
        champion=service.desk.champion,
        newest=service.newest,
        silence=service.silence,
        clock=service.clock,
        stale_after=service.settings.stale_after,
        shelved=service.hush.shelved,
    )
    return FleetBoard(sources, token=secrets.token_hex(4))
