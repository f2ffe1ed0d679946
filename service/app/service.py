"""The running whole, every object of it built here; its roles say which of them are at work."""

import signal
import socket
from collections.abc import Callable
from datetime import timedelta

import httpx
from starlette.types import ASGIApp

from alarmcast import AsyncClient
from service.app.api import create_app
from service.app.config_check import model_conflict
from service.app.configuration import plant_clock
from service.app.connection_limits import ConnectionLimits
from service.app.gc_tuning import freeze, limit_heaps, release_free_memory
from service.app.health import Health, health_of
from service.app.http_server import Server, server_config, trusted_proxies, url_of
from service.app.maintenance_thread import MaintenanceThread
from service.app.metrics import Metrics
from service.app.status import StatusService
from service.app.stores import Stores
from service.app.warnings import BackupWatch, CertificateExpiry
from service.auth.build import AuthServices
from service.broker_access import build as broker_access
from service.errors import InputRejected
from service.forecasts import build as forecasts
from service.forecasts.cache import ForecastMade
from service.http.rate_limit import network_of
from service.http.request_metrics import HttpMetrics, RequestMiddleware
from service.ingest import build as ingest
from service.learning import build as learning
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
        self.clock, self.bus = plant_clock(settings), ChangeBus()
        process = process_info(settings, wall_now())
        self.cluster: SingleProcess = (
            SingleProcess()
            if stores.database.is_sqlite
            else PostgresCluster(process, stores.database, self.bus, self._report)
        )
        self.auth = AuthServices(settings, stores.database, self.clock, self.bus)
        self.machines = machines.build(
            settings, stores.database, machines=stores.machines, events=stores.events, bus=self.bus
        )
        self.ingest = ingest.build(
            settings, self.machines.cache, stores.events, clock=self.clock, bus=self.bus, process_name=process.name
        )
        mqtt, source = self.ingest.mqtt, (stores.machines, stores.events)
        self.forecasts = forecasts.build(
            settings,
            forecasts.ForecastSources(*source, stores.catalogue, stores.versions, stores.forecasts),
            clock=self.clock,
            bus=self.bus,
            mqtt=mqtt,
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
        self.broker_access = broker_access.build(settings, stores.machines, self.clock, mqtt, self.is_leader)
        self.learning = learning.build(
            settings,
            stores.versions,
            self.clock,
            publisher=self.forecasts.publisher,
            credentials=self.broker_access.credentials,
            bus=self.bus,
            is_leader=self.is_leader,
            on_version_committed=self._after_learning,
        )
        self.scoring = scoring.build(
            settings, *source, stores.versions, stores.outcomes, clock=self.clock, is_leader=self.is_leader
        )
        self.certificates = CertificateExpiry(settings, broker=lambda: mqtt.certificate_ends, now=wall_now)
        self.backups = BackupWatch(settings, now=wall_now)
        self.maintenance = self._build_maintenance()
        self.status, self.http_metrics, self.metrics = StatusService(self), HttpMetrics(), Metrics(self)
        self.app = create_app(self)

    @property
    def key(self) -> str:
        """The token of the local admin; a running service writes it to its data folder."""
        return str(self.auth.local)

    def is_leader(self) -> bool:
        """Say whether this process does what is done once for all."""
        return ProcessRole.WORKER in self.roles and self.cluster.is_holder(Lease.LEADER)

    def asgi_app(self) -> ASGIApp:
        """Return the API with the operators' pages around it; once a process, because NiceGUI is one."""
        if ProcessRole.API not in self.roles:
            return RequestMiddleware(self.app, self.http_metrics)
        with gc_disabled():
            from service.page.changes import PageChanges, Topic  # noqa: PLC0415 - not all processes need pages
            from service.page.mount import is_drawn, mount_pages  # noqa: PLC0415
            from service.page.page_auth import PageAuth  # noqa: PLC0415
            from service.page.page_rate_limit import Visitors  # noqa: PLC0415

        reception = PageAuth(
            self.internal_client,
            lambda sites: self.internal_client(self.auth.issue_page_token(sites), "127.0.0.1"),
            PageChanges(
                self.bus, {ForecastMade: Topic.FORECASTS}, lambda: self.cluster.errors.get("changes") is None
            ),
        )
        charge, name = self.auth.config.charge_page, self.auth.config.page_visitor
        visitors = Visitors(charge, name, is_drawn, network_of)
        return RequestMiddleware(mount_pages(self.app, reception, visitors), self.http_metrics)

    def internal_client(self, key: str, address: str) -> AsyncClient:
        """Return a client of the app in this process, with a key and the address of the visitor."""
        return AsyncClient("http://here", key=key, transport=httpx.ASGITransport(self.app, client=(address, 0)))

    def _build_maintenance(self) -> MaintenanceThread:
        return MaintenanceThread(
            own=[
                *([self._look_for_silence] if ProcessRole.API in self.roles else []),
                self._delete_stale_files,
                self.stores.database.truncate_wal,
                release_free_memory,
                lambda: self.machines.clock_check.look(self.clock.now()),
            ],
            shared=[self.learning.enrolment.queue_refreshes],
            retention=self.machines.retention,
            clock=self.clock,
            leads=self.is_leader,
            trusted=self.machines.clock_check.trusted,
        )

    def start(self) -> None:
        """Start what runs beside the web app, as the roles say."""
        self.cluster.start()
        if ProcessRole.INGEST in self.roles:
            self.ingest.ingester.start(self.ingest.mqtt)
        self.ingest.mqtt.start()
        if self.stores.database.is_sqlite:  # no other process uses the database
            self.stores.jobs.recover()
            self.backups.begin()
            self.learning.history.sweep()
            self.learning.worker.sweep()
        for thread in self._threads():
            thread.start()

    def stop(self) -> None:
        """Stop taking messages, finish the batch at hand, end."""
        self.learning.history.stop()
        for thread in self._threads():
            thread.stop()
        if ProcessRole.INGEST in self.roles:
            self.ingest.ingester.stop()
        self.cluster.stop()
        self.ingest.mqtt.stop()
        self.auth.remove_local_token()

    def announce(self, address: str) -> None:
        """Tell those who work on the same folder where the service is to be asked, and with which key."""
        self.auth.write_local_token()
        self.stores.lock.write_address(address, self.settings.tls_cert)

    def run(self, listener: socket.socket) -> None:
        """Serve until SIGTERM or SIGINT; refuse lengths of windows that the model was not learned with."""
        if conflict := model_conflict(self.settings, self.stores.database):
            raise InputRejected(conflict)
        limit_heaps()
        self.announce(url_of(listener, tls=self.settings.tls_cert is not None))
        # uvicorn raises the signal again once it has stopped; we still have to finish the batch at hand.
        for ending in (signal.SIGTERM, signal.SIGINT):
            signal.signal(ending, lambda *_: None)
        config = server_config(self.asgi_app(), self.settings)  # first: threads would slow it down
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
        training: list[BackgroundThread] = [self.learning.worker, self.scoring.thread] if worker else []
        looking: list[BackgroundThread] = [self.maintenance, *([self.forecasts.thread] if api or worker else [])]
        sending: list[BackgroundThread] = [self.notifications.thread, self.notifications.sender] if worker else []
        return [*training, *looking, *sending, *([self.broker_access.reconciler] if api or worker else [])]

    def _look_for_silence(self) -> None:
        self.machines.silence.refresh(self.clock.now())

    def _delete_stale_files(self) -> None:
        """Delete stale files of this host: weights of deleted versions, and files of killed processes."""
        old = (wall_now() - _STALE_FILE_AGE).timestamp()
        self.stores.versions.clear_folder(older_than=old)
        self.learning.worker.sweep(older_than=old)
        self.learning.history.sweep(older_than=old)

    def _report(self, turns: tuple[str, ...]) -> HealthReport:
        health = self.health()
        rate = round(self.ingest.ingester.pace.rate(60), 3)
        return HealthReport(health.ready, health.errors, turns, rate)

    def _after_learning(self) -> None:
        """Serve the new version at once, and let go of old ones; only now may there be one too many."""
        self.forecasts.service.champion.invalidate()
        self.stores.versions.prune(keep=self.settings.keep_versions)
