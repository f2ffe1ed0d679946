"""The running whole, every object of it built here; its roles say which of them are at work."""

import signal
import socket
from collections.abc import Callable
from datetime import timedelta

import httpx
from starlette.types import ASGIApp

from alarmcast import AsyncClient
from service.app.api import NOUNS, VITALS, create_app
from service.app.api_services import parts_of
from service.app.configuration import plant_clock
from service.app.connection_limits import ConnectionLimits
from service.app.gc_tuning import freeze, limit_heaps, release_free_memory
from service.app.health import health_of
from service.app.http_server import Server, server_config, trusted_proxies, url_of
from service.app.maintenance_thread import MaintenanceThread
from service.app.metrics import Metrics
from service.app.status import StatusService
from service.app.stores import Stores
from service.app.warnings import BackupWatch, CertificateExpiry
from service.auth.build import AuthServices
from service.broker_access import build as broker_access
from service.broker_access.thread import Reconciler
from service.forecasts import build as forecasts
from service.http.health import Health
from service.http.rate_limit import network_of
from service.http.request_metrics import HttpMetrics, RequestMiddleware
from service.ingest import build as ingest
from service.learning.build import build_learning
from service.learning.enrolment_service import wall_now
from service.machines import build as machines
from service.messaging.background import BackgroundThread
from service.messaging.bus import ChangeBus
from service.messaging.cluster import PostgresCluster, SingleProcess, process_info
from service.messaging.process import HealthReport, Lease
from service.notifications import build as notifications
from service.scoring import build as scoring
from service.settings import Settings
from wire.enums import ProcessRole
from wire.fast_start import gc_disabled

_STALE_FILE_AGE = timedelta(days=1)  # no learning and no upload leaves its files alone for so long


class Service:
    """One process: broker link, ingester, worker, periodic duties and web app on one store, as its roles say."""

    def __init__(self, settings: Settings, stores: Stores) -> None:
        self.settings, self.stores = settings, stores
        self.roles = settings.process_roles
        self.clock = plant_clock(settings)
        self.bus = ChangeBus()
        self.auth = AuthServices(settings, stores.database, self.clock, self.bus)
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
        self.notifications = notifications.build(
            settings,
            stores.database,
            machines=stores.machines,
            events=stores.events,
            clock=self.clock,
            wall=wall_now,
            bus=self.bus,
        )
        self.credentials = broker_access.build(settings, stores.machines, self.clock)
        self.reconciler = Reconciler(
            self.credentials, connections=lambda: self.ingest.mqtt.connect_count, is_leader=self.is_leader
        )
        self.expiry = CertificateExpiry(settings, broker=lambda: self.ingest.mqtt.certificate_ends, now=wall_now)
        self.backups = BackupWatch(settings, now=wall_now)
        learning = build_learning(
            settings,
            stores.database,
            stores.versions,
            self.clock,
            time_policy=ingest.time_policy(settings),
            publisher=self.forecasts.publisher,
            credentials=self.credentials,
            bus=self.bus,
            is_leader=self.is_leader,
            on_version_committed=self._after_learning,
        )
        self.enrolment, self.history = learning.enrolment, learning.history
        self.job_watch, self.worker = learning.job_watch, learning.worker
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
        self.scoring = scoring.build(
            settings,
            machines=stores.machines,
            events=stores.events,
            versions=stores.versions,
            outcomes=stores.outcomes,
            clock=self.clock,
            is_leader=self.is_leader,
        )
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
            attempts=lambda: {
                "delivered": self.notifications.sender.delivered,
                "failed": self.notifications.sender.failed,
            },
        )
        nouns = NOUNS if ProcessRole.API in self.roles else VITALS
        self.app = create_app(parts_of(self), self.auth.config, nouns)

    @property
    def key(self) -> str:
        """The key of whoever runs this process; a running service leaves it in its data folder."""
        return str(self.auth.local)

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
            lambda sites: self.internal_client(self.auth.issue_page_token(sites), "127.0.0.1"),
        )
        charge, name = self.auth.config.charge_page, self.auth.config.page_visitor
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
        self.auth.remove_local_token()

    def announce(self, address: str) -> None:
        """Tell those who work on the same folder where the service is to be asked, and with which key."""
        self.auth.write_local_token()
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
        learning: list[BackgroundThread] = [self.worker, self.scoring.thread] if worker else []
        looking: list[BackgroundThread] = [self.housekeeping, *([self.forecasts.thread] if api or worker else [])]
        sending: list[BackgroundThread] = [self.notifications.thread, self.notifications.sender] if worker else []
        return [*learning, *looking, *sending, *([self.reconciler] if api or worker else [])]

    def _look_for_silence(self) -> None:
        self.machines.silence.refresh(self.clock.now())

    def _delete_stale_files(self) -> None:
        """Delete from this host's folder what nobody needs: let go by another host, or left by who was killed."""
        old = (wall_now() - _STALE_FILE_AGE).timestamp()
        self.stores.versions.clear_folder(older_than=old)
        self.worker.sweep(older_than=old)
        self.history.sweep(older_than=old)

    def _report(self, turns: tuple[str, ...]) -> HealthReport:
        health = self.health()
        rate = round(self.ingest.ingester.pace.rate(60), 3)
        return HealthReport(health.ready, health.errors, turns, rate)

    def _after_learning(self) -> None:
        """Serve the new version at once, and let go of old ones; only now may there be one too many."""
        self.forecasts.service.champion.invalidate()
        self.stores.versions.prune(keep=self.settings.keep_versions)
