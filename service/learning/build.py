"""Build the learning feature: its services, its thread and its routes."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from fastapi import APIRouter

from service.broker_access.service import CredentialService
from service.database.engine import Database
from service.forecasts.publisher import ForecastPublisher
from service.forecasts.version_store import VersionStore
from service.ingest.service import TimePolicy
from service.learning import api, enrolment_api
from service.learning.candidate import Candidate
from service.learning.commit_store import UpdateStore
from service.learning.enrolment_service import EnrolmentService, wall_now
from service.learning.enrolment_store import EnrolmentStore
from service.learning.history_import import HistoryImporter, UploadLimits
from service.learning.job_store import JobStore
from service.learning.job_watch import JobWatch
from service.learning.models import Job
from service.learning.site_filters import SiteFilteredHoldouts, SiteFilteredVersions
from service.learning.thread import TrainingWorker
from service.learning.training_data import DatasetBuilder, TrainingDataPolicy, window_spec
from service.learning.training_process import TrainingProcess, WarmProcessPool
from service.learning.versions import VersionService
from service.machines.catalogue_store import CatalogueStore
from service.machines.event_store import EventStore
from service.machines.store import MachineStore
from service.settings import Settings
from wire.clock import PlantClock


@dataclass(frozen=True)
class LearningCallbacks:
    """What learning asks and tells the rest of the process."""

    is_leader: Callable[[], bool]
    on_jobs_changed: Callable[[], None]
    on_version_committed: Callable[[], None]


@dataclass(frozen=True)
class Learning:
    """Everything of learning that runs in a process."""

    enrolment: EnrolmentService
    history: HistoryImporter
    job_watch: JobWatch
    worker: TrainingWorker


def build_learning(
    settings: Settings,
    database: Database,
    versions: VersionStore,
    clock: PlantClock,
    *,
    time_policy: TimePolicy,
    publisher: ForecastPublisher,
    credentials: CredentialService,
    callbacks: LearningCallbacks,
) -> Learning:
    """Construct the services and the thread of learning."""
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
        time_policy,
        folder=settings.data_dir / "uploads",
        max_bytes=settings.history_max_mb * 1_000_000,
        limits=UploadLimits(settings.history_uploads, settings.history_uploads_per_site),
        stored=events,
    )
    job_watch = JobWatch(jobs)

    def jobs_changed() -> None:
        job_watch.changed()
        callbacks.on_jobs_changed()

    worker = TrainingWorker(
        jobs=jobs,
        updates=UpdateStore(database, versions.weights),
        queue_ready=lambda: enrolment.queue_ready() if callbacks.is_leader() else 0,
        changed=jobs_changed,
        process_pool=WarmProcessPool(lambda: _training_process(settings)),
        job_payload=lambda job: _job_payload(job, settings, clock),
        read_candidate=Candidate.read,
        wall=wall_now,
        plant=clock.now,
        folder=settings.data_dir / "learning",
        on_done=callbacks.on_version_committed,
        wake=enrolment.wake,
    )
    return Learning(enrolment, history, job_watch, worker)


def _training_process(settings: Settings) -> TrainingProcess:
    command = [sys.executable, "-m", "service", "train-job"]
    return TrainingProcess(command, settings.data_dir / "learning" / "compiled")


def _job_payload(job: Job, settings: Settings, clock: PlantClock) -> dict[str, Any]:
    return {
        "settings": json.loads(settings.model_dump_json()),
        "machine": str(job.machine),
        "now": clock.now().isoformat(),
    }


@dataclass(frozen=True)
class LearningRoutes:
    """What the routes of learning use."""

    enrolment: enrolment_api.EnrolmentServices
    versions: SiteFilteredVersions
    holdouts: SiteFilteredHoldouts
    version_service: VersionService
    catalogue: CatalogueStore
    streams: api.Streams


def learning_routers(services: LearningRoutes) -> list[APIRouter]:
    """Return the routes of enrolment, jobs, models and memory."""
    return [
        enrolment_api.router(services.enrolment),
        api.jobs_router(services.enrolment.jobs, services.streams),
        api.models_router(services.versions, services.holdouts, services.version_service),
        api.memory_router(services.versions, services.catalogue),
    ]
