"""The running whole, every object of it built here; its roles say which of them are at work."""

import json
import random
import signal
import socket
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
from starlette.types import ASGIApp

from alarmcast import AsyncClient
from service import __version__
from service.app.api import NOUNS, VITALS, create_app
from service.app.api_services import parts_of
from service.app.auth import AuthServices
from service.app.backup_age import BackupWatch
from service.app.certificate_expiry import CertificateExpiry
from service.app.configuration import (
    agent_access,
    broker_address,
    curriculum,
    dynamic_security,
    plant_clock,
    window_spec,
)
from service.app.connection_limits import ConnectionLimits
from service.app.gc_tuning import freeze, gc_disabled, limit_heaps, release_free_memory
from service.app.health import health_of
from service.app.http_server import Server, server_config, trusted_proxies, url_of
from service.app.maintenance_thread import MaintenanceThread
from service.app.metrics import Metrics
from service.app.status import StatusService
from service.app.stores import Stores
from service.broker_access.service import CredentialService
from service.broker_access.store import CredentialStore
from service.broker_access.thread import Reconciler
from service.forecasts import build as forecasts
from service.http.health import Health
from service.http.rate_limit import network_of
from service.http.request_metrics import HttpMetrics, RequestMiddleware
from service.ingest import build as ingest
from service.learning.candidate_file import read
from service.learning.enrolment_service import EnrolmentService, wall_now
from service.learning.history_import import HistoryImporter, UploadLimits
from service.learning.job import Job
from service.learning.job_watch import JobWatch
from service.learning.process_pool import WarmProcessPool
from service.learning.thread import TrainingWorker
from service.learning.training_data import DatasetBuilder
from service.learning.training_process import TrainingProcess
from service.machines import build as machines
from service.messaging.background import BackgroundThread
from service.messaging.bus import ChangeBus
from service.messaging.cluster import PostgresCluster, SingleProcess, process_info
from service.messaging.process import HealthReport, Lease
from service.notifications.acknowledgement_store import AcknowledgementStore
from service.notifications.delivery_store import DeliveryStore
from service.notifications.maintenance_store import MaintenanceStore
from service.notifications.models import HysteresisPolicy
from service.notifications.service import NotificationService
from service.notifications.shelving_store import ShelvingStore
from service.notifications.store import NotificationStore
from service.notifications.suppression_service import SuppressionService
from service.notifications.thread import NotificationThread
from service.notifications.webhook_addresses import Receivers
from service.notifications.webhook_client import WebhookClient
from service.notifications.webhook_sender import WebhookSender
from service.scoring.service import ScoringService
from service.scoring.thread import ScoringThread
from service.settings import Settings
from wire.enums import ProcessRole

_STALE_FILE_AGE = timedelta(days=1)  # no learning and no upload leaves its files alone for so long


class Service:
    """One process: broker link, ingester, worker, periodic duties and web app on one store, as its roles say."""

    def __init__(self, settings: Settings, stores: Stores) -> None:
        self.settings, self.stores = settings, stores
        self.roles = settings.process_roles
        self.clock = plant_clock(settings)
        self.bus = ChangeBus()
        self.gatehouse = AuthServices(settings, stores.database, self.clock, self.bus)
        self.job_watch = JobWatch(stores.jobs, self.bus)
        process = process_info(settings, wall_now())
        self.machines = machines.build(
            settings, stores.database, machines=stores.machines, events=stores.events, bus=self.bus
        )
        self.ingest = ingest.build(
            settings,
            machines=self.machines.cache,
            events=stores.events,
            clock=self.clock,
            bus=self.bus,
            broker=broker_address(settings),
            process_name=process.name,
        )
        self.forecasts = forecasts.build(
            settings,
            forecasts.ForecastSources(
                stores.machines, stores.events, stores.catalogue, stores.versions, stores.forecasts
            ),
            clock=self.clock,
            bus=self.bus,
            mqtt=self.ingest.mqtt,
            is_leader=self.is_leader,
        )
        shelves, windows = ShelvingStore(stores.database), MaintenanceStore(stores.database)
        acknowledgements = AcknowledgementStore(stores.database)
        self.deliveries = DeliveryStore(stores.database)
        self.post = WebhookClient(
            agent=f"Alarmcast/{__version__}", receivers=Receivers(settings.receiver_networks)
        )
        self.notify = NotificationService(
            machines=stores.machines,
            log=stores.events,
            notices=NotificationStore(stores.database),
            shelves=shelves,
            windows=windows,
            acknowledgements=acknowledgements,
            clock=self.clock,
            wall=wall_now,
            policy=HysteresisPolicy(
                settings.notification_release_ratio, timedelta(minutes=settings.notification_quiet_minutes)
            ),
        )
        self.hush = SuppressionService(
            machines=stores.machines,
            shelves=shelves,
            windows=windows,
            acknowledgements=acknowledgements,
            clock=self.clock,
            max_shelving=timedelta(hours=settings.shelving_max_hours),
            bus=self.bus,
        )
        self.lookout = NotificationThread(self.notify)
        self.courier = WebhookSender(
            self.deliveries,
            self.post,
            wall=wall_now,
            plant=self.clock.now,
            chance=random.random,
        )
        self.credentials = CredentialService(
            stores.machines,
            CredentialStore(stores.database),
            dynamic_security(settings),
            self.clock,
            agent_access(settings),
        )
        self.reconciler = Reconciler(
            self.credentials, connections=lambda: self.ingest.mqtt.connect_count, leads=self.is_leader
        )
        self.expiry = CertificateExpiry(settings, broker=lambda: self.ingest.mqtt.certificate_ends, now=wall_now)
        self.backups = BackupWatch(settings, now=wall_now)
        self.enrolment = EnrolmentService(
            machines=stores.machines,
            enrolments=stores.enrolments,
            jobs=stores.jobs,
            log=stores.events,
            school=DatasetBuilder(stores.machines, stores.events, window_spec(settings), curriculum(settings)),
            clock=self.clock,
            announcer=self.forecasts.publisher,
            credentials=self.credentials,
            refresh_after=timedelta(days=settings.refresh_days) if settings.refresh_days else None,
        )
        self.worker = TrainingWorker(
            jobs=stores.jobs,
            updates=stores.updates,
            queue_ready=self._admit,
            bus=self.bus,
            standby=WarmProcessPool(self._apprentice),
            job_payload=self._job_payload,
            take_over=read,
            wall=wall_now,
            plant=self.clock.now,
            folder=settings.data_dir / "learning",
            on_done=self._after_learning,
            wake=self.enrolment.wake,
        )
        self.housekeeping = MaintenanceThread(
            own=[
                *([self._look_for_silence] if ProcessRole.API in self.roles else []),
                self._delete_stale_files,
                stores.database.truncate_wal,
                release_free_memory,
                lambda: self.machines.clock_check.look(self.clock.now()),
            ],
            shared=[self.enrolment.queue_refreshes],
            retention=self.machines.retention,
            clock=self.clock,
            leads=self.is_leader,
            trusted=self.machines.clock_check.trusted,
        )
        self.scoring = ScoringService(
            machines=stores.machines,
            log=stores.events,
            versions=stores.versions,
            outcomes=stores.outcomes,
            clock=self.clock,
            grace=timedelta(minutes=settings.scoring_grace_minutes),
        )
        self.scorekeeper = ScoringThread(self.scoring, leads=self.is_leader)
        self.history = HistoryImporter(
            stores.machines,
            stores.events,
            self.clock,
            ingest.time_policy(settings),
            folder=settings.data_dir / "uploads",
            most_bytes=settings.history_max_mb * 1_000_000,
            limits=UploadLimits(settings.history_uploads, settings.history_uploads_per_site),
            stored=stores.events,
        )
        self.notify.subscribe_to(self.bus)
        self.enrolment.subscribe_to(self.bus)
        self.company: SingleProcess = (
            SingleProcess()
            if stores.database.is_sqlite
            else PostgresCluster(process, stores.database, self.bus, self._report)
        )
        self.condition = StatusService(
            settings=settings,
            stores=stores,
            clock=self.clock,
            ingester=self.ingest.ingester,
            link=self.ingest.mqtt,
            watch=self.ingest.broker_stats,
            streams=self.forecasts.streams,
            quarantine=self.machines.quarantine,
            present=self.company.processes,
            guard=lambda: self.credentials.auth_state,
        )
        self.traffic = HttpMetrics()
        self.metrics = Metrics(
            settings=settings,
            stores=stores,
            clock=self.clock,
            wall=wall_now,
            health=self.health,
            condition=self.condition.read,
            ingester=self.ingest.ingester,
            desk=self.forecasts.service,
            newest=self.forecasts.cache,
            champion=self.forecasts.service.champion,
            silence=self.machines.silence,
            traffic=self.traffic,
            certificates=self.expiry.ends,
            backups=self.backups,
            attempts=lambda: {"delivered": self.courier.delivered, "failed": self.courier.failed},
        )
        nouns = NOUNS if ProcessRole.API in self.roles else VITALS
        self.app = create_app(parts_of(self), self.gatehouse.door, nouns)

    @property
    def key(self) -> str:
        """The key of whoever runs this process; a running service leaves it in its data folder."""
        return str(self.gatehouse.local)

    def is_leader(self) -> bool:
        """Say whether this process does what is done once for all."""
        return ProcessRole.WORKER in self.roles and self.company.is_holder(Lease.LEADER)

    def asgi_app(self) -> ASGIApp:
        """Return the API with the operators' pages around it; once a process, because NiceGUI is one."""
        if ProcessRole.API not in self.roles:
            return RequestMiddleware(self.app, self.traffic)
        with gc_disabled():
            from service.page.mount import is_drawn, mount_pages  # noqa: PLC0415 - not all processes need pages
            from service.page.page_auth import PageAuth  # noqa: PLC0415
            from service.page.page_rate_limit import Visitors  # noqa: PLC0415

        reception = PageAuth(
            self.internal_client,
            lambda sites: self.internal_client(self.gatehouse.issue_page_token(sites), "127.0.0.1"),
        )
        charge, name = self.gatehouse.door.charge_page, self.gatehouse.door.page_visitor
        visitors = Visitors(charge, name, is_drawn, network_of)
        return RequestMiddleware(mount_pages(self.app, reception, visitors), self.traffic)

    def internal_client(self, key: str, address: str) -> AsyncClient:
        """Return a client that asks the app in this process as whoever has the key, from where they are."""
        return AsyncClient("http://here", key=key, transport=httpx.ASGITransport(self.app, client=(address, 0)))

    def start(self) -> None:
        """Start what runs beside the web app, as the roles say."""
        self.company.start()
        if ProcessRole.INGEST in self.roles:
            self.ingest.ingester.start(self.ingest.mqtt)
        self.ingest.mqtt.start()
        if self.stores.database.is_sqlite:  # nobody else can be at work here
            self.stores.jobs.recover()
            self.backups.begin()
            self.history.sweep()
            self.worker.sweep()
        for thread in self._threads():
            thread.start()

    def stop(self) -> None:
        """Stop taking messages, finish the batch at hand, end."""
        self.history.stop()
        for thread in self._threads():
            thread.stop()
        if ProcessRole.INGEST in self.roles:
            self.ingest.ingester.stop()
        self.company.stop()
        self.ingest.mqtt.stop()
        self.gatehouse.remove_local_token()

    def announce(self, address: str) -> None:
        """Tell those who work on the same folder where the service is to be asked, and with which key."""
        self.gatehouse.write_local_token()
        self.stores.lock.write_address(address, self.settings.tls_cert)

    def run(self, listener: socket.socket) -> None:
        """Serve until SIGTERM or SIGINT."""
        limit_heaps()
        self.announce(url_of(listener, tls=self.settings.tls_cert is not None))
        # uvicorn raises the signal again once it has stopped; we still have to finish the batch at hand.
        for ending in (signal.SIGTERM, signal.SIGINT):
            signal.signal(ending, lambda *_: None)
        config = server_config(self.asgi_app(), self.settings)  # first: whoever works beside it would slow it down
        config.timeout_graceful_shutdown = 5
        freeze()
        self.start()
        try:
            limits = ConnectionLimits.of(self.settings, trusted_proxies(self.settings))
            Server(config, ending=self.forecasts.streams.close, limits=limits).run(sockets=[listener])
        finally:
            self.stop()

    def health(self, sees: Callable[[str], bool] = lambda _site: True) -> Health:
        """Say how every part is; warnings name machines of those sites only that the asker sees."""
        return health_of(self, sees)

    def _threads(self) -> list[BackgroundThread]:
        """Return the threads of this process's roles, in the order in which they are stopped."""
        api, worker = ProcessRole.API in self.roles, ProcessRole.WORKER in self.roles
        learning: list[BackgroundThread] = [self.worker, self.scorekeeper] if worker else []
        looking: list[BackgroundThread] = [self.housekeeping, *([self.forecasts.thread] if api or worker else [])]
        telling: list[BackgroundThread] = [self.lookout, self.courier] if worker else []
        return [*learning, *looking, *telling, *([self.reconciler] if api or worker else [])]

    def _look_for_silence(self) -> None:
        self.machines.silence.refresh(self.clock.now())

    def _delete_stale_files(self) -> None:
        """Delete from this host's folder what nobody needs: let go by another host, or left by who was killed."""
        old = (wall_now() - _STALE_FILE_AGE).timestamp()
        self.stores.versions.clear_folder(older_than=old)
        self.worker.sweep(older_than=old)
        self.history.sweep(older_than=old)

    def _admit(self) -> int:
        return self.enrolment.queue_ready() if self.is_leader() else 0

    def _report(self, turns: tuple[str, ...]) -> HealthReport:
        health = self.health()
        rate = round(self.ingest.ingester.pace.rate(60), 3)
        return HealthReport(health.ready, health.errors, turns, rate)

    def _apprentice(self) -> TrainingProcess:
        compiled = self.settings.data_dir / "learning" / "compiled"
        return TrainingProcess([sys.executable, "-m", "service", "train-job"], compiled)

    def _job_payload(self, job: Job) -> dict[str, Any]:
        return {
            "settings": json.loads(self.settings.model_dump_json()),
            "machine": str(job.machine),
            "now": self.clock.now().isoformat(),
        }

    def _after_learning(self) -> None:
        """Serve the new version at once, and let go of old ones; only now may there be one too many."""
        self.forecasts.service.champion.invalidate()
        self.stores.versions.prune(keep=self.settings.keep_versions)
