"""Build the learning feature: its services, its thread and its routes."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from fastapi import APIRouter

from service.auth.audit_store import AuditStore
from service.broker_access.service import CredentialService
from service.forecasts.scheduler import ForecastPublisher
from service.forecasts.streams import StreamHub
from service.forecasts.version_store import VersionStore
from service.ingest.build import time_policy
from service.learning import api, enrolment_api, history_api
from service.learning.commit_store import UpdateStore
from service.learning.enrolment_service import EnrolmentService
from service.learning.enrolment_store import EnrolmentStore
from service.learning.evaluation_store import HoldoutStore
from service.learning.history_uploads import HistoryImporter, UploadLimits
from service.learning.job_store import JobStore
from service.learning.job_watch import JobWatch
from service.learning.models import Job
from service.learning.site_filters import SiteFilteredHoldouts, SiteFilteredJobs, SiteFilteredVersions
from service.learning.thread import TrainingWorker
from service.learning.training_data import DatasetBuilder, TrainingDataPolicy, window_spec
from service.learning.training_process import TrainingProcess, WarmProcessPool
from service.learning.versions import VersionService
from service.machines.catalogue_store import CatalogueStore
from service.machines.event_store import EventStore
from service.machines.models import MachineReader
from service.machines.store import MachineStore
from service.messaging.bus import ChangeBus, HistoryLoaded
from service.settings import Settings
from wire.clock import PlantClock


@dataclass(frozen=True)
class Learning:
    """Everything of learning that runs in a process."""

    enrolment: EnrolmentService
    history: HistoryImporter
    job_watch: JobWatch
    worker: TrainingWorker
    versions: VersionStore
    bus: ChangeBus

    def routers(
        self, machines: MachineReader, catalogue: CatalogueStore, audit: AuditStore, streams: StreamHub
    ) -> list[APIRouter]:
        """Return the routes; ``machines`` must be limited to the caller's sites."""
        jobs, versions = SiteFilteredJobs(self.worker.jobs, self.job_watch), SiteFilteredVersions(self.versions)
        holdouts = SiteFilteredHoldouts(HoldoutStore(self.versions.database))
        enrolment = enrolment_api.EnrolmentServices(
            enrolment=self.enrolment,
            machines=machines,
            jobs=jobs,
        )
        history = history_api.HistoryServices(
            machines=machines,
            history=self.history,
            audit=audit,
            on_history_loaded=lambda machine: self.bus.publish(HistoryLoaded(machine)),
        )
        return [
            enrolment_api.router(enrolment),
            history_api.router(history),
            api.jobs_router(jobs, streams),
            api.models_router(versions, holdouts, VersionService(self.versions, self.enrolment.clock)),
            api.memory_router(versions, catalogue),
        ]


def build(
    settings: Settings,
    versions: VersionStore,
    clock: PlantClock,
    *,
    publisher: ForecastPublisher,
    credentials: CredentialService,
    bus: ChangeBus,
    is_leader: Callable[[], bool],
    on_version_committed: Callable[[], None],
) -> Learning:
    """Construct the services and the thread of learning."""
    database = versions.database
    machines, events, jobs = MachineStore(database), EventStore(database), JobStore(database)
    policy = TrainingDataPolicy.from_settings(settings)
    enrolment = EnrolmentService(
        machines=machines,
        enrolments=EnrolmentStore(database),
        jobs=jobs,
        events=events,
        datasets=DatasetBuilder(machines, events, window_spec(settings), policy),
        clock=clock,
        publisher=publisher,
        credentials=credentials,
        refresh_after=timedelta(days=settings.refresh_days) if settings.refresh_days else None,
    )
    history = HistoryImporter(
        machines,
        events,
        clock,
        time_policy(settings),
        folder=settings.data_dir / "uploads",
        max_bytes=settings.history_max_mb * 1_000_000,
        limits=UploadLimits(settings.history_uploads, settings.history_uploads_per_site),
        stored=events,
    )
    enrolment.subscribe_to(bus)
    job_watch = JobWatch(jobs, bus)
    worker = TrainingWorker(
        jobs=jobs,
        updates=UpdateStore(database, versions.weights),
        queue_ready=lambda: enrolment.queue_ready() if is_leader() else 0,
        bus=bus,
        process_pool=WarmProcessPool(lambda: _training_process(settings)),
        job_payload=lambda job: _job_payload(job, settings, clock),
        clock=clock,
        folder=settings.data_dir / "learning",
        on_done=on_version_committed,
        wake=enrolment.wake,
    )
    return Learning(enrolment, history, job_watch, worker, versions, bus)


def _training_process(settings: Settings) -> TrainingProcess:
    command = [sys.executable, "-m", "service", "train-job"]
    return TrainingProcess(command, settings.data_dir / "learning" / "compiled")


def _job_payload(job: Job, settings: Settings, clock: PlantClock) -> dict[str, Any]:
    return {
        "settings": json.loads(settings.model_dump_json()),
        "machine": str(job.machine),
        "now": clock.now().isoformat(),
    }
