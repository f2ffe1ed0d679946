"""The running whole, every object of it built here; its roles say which of them are at work."""

import signal
import socket
from collections.abc import Callable, Iterable
from datetime import timedelta

import httpx
from starlette.types import ASGIApp

from alarmcast import AsyncClient
from service.app.api import NOUNS, VITALS, create_app
from service.app.api_services import parts_of
from service.app.configuration import (
    plant_clock,
    time_policy,
)
from service.app.connection_limits import ConnectionLimits
from service.app.coordination import ClusterCallbacks, PostgresCluster, SingleProcess, process_info
from service.app.gc_tuning import freeze, limit_heaps, release_free_memory
from service.app.health import health_of
from service.app.http_server import Server, server_config, trusted_proxies, url_of
from service.app.maintenance_thread import MaintenanceThread
from service.app.metrics import Metrics
from service.app.remote_changes import RemoteChangeHandler
from service.app.status import StatusService
from service.app.stores import Stores
from service.app.warnings import BackupWatch, CertificateExpiry
from service.auth.build import AuthServices
from service.broker_access import build as broker_access
from service.broker_access.thread import Reconciler
from service.forecasts.base_rates import BaseRates
from service.forecasts.cache import ForecastCache
from service.forecasts.champion import ChampionCache
from service.forecasts.publisher import ForecastPublisher
from service.forecasts.scheduler import ForecastScheduler
from service.forecasts.service import ForecastService
from service.forecasts.thread import ForecastThread
from service.http.health import Health
from service.http.rate_limit import network_of
from service.http.request_metrics import HttpMetrics, RequestMiddleware
from service.ingest.inbox import BatchLimits, InboxLimits
from service.ingest.thread import Ingester
from service.learning.build import LearningCallbacks, build_learning
from service.learning.enrolment_service import wall_now
from service.machines.clock_check import ClockCheck
from service.machines.machine_cache import MachineCache
from service.machines.models import Machine
from service.machines.quarantine_store import QuarantineStore
from service.machines.retention import Retention
from service.machines.retention_store import RetentionStore
from service.machines.silence_detector import SilenceDetector
from service.messaging.background import BackgroundThread
from service.messaging.broker_connection import broker_config
from service.messaging.broker_stats import BrokerStats
from service.messaging.change_event import ChangeEvent, ChangeKind
from service.messaging.mqtt_client import MqttClient, SubscriptionMode
from service.messaging.process import HealthReport, Lease
from service.messaging.pubsub import EventBus
from service.notifications import build as notifications
from service.scoring import build as scoring
from service.settings import Settings
from wire.enums import ProcessRole
from wire.fast_start import gc_disabled
from wire.identity import MachineId
from wire.mqtt import MqttVersion

_STALE_FILE_AGE = timedelta(days=1)  # no learning and no upload leaves its files alone for so long


def retention(settings: Settings, stores: "Stores") -> Retention:
    """Return what is kept for how long."""
    return Retention(
        RetentionStore(stores.database),
        keep=timedelta(days=settings.retention_days),
        keep_quarantined=timedelta(days=settings.quarantine_days),
        most_bytes=None if settings.retention_gb is None else int(settings.retention_gb * 1e9),
    )


def clock_check(settings: Settings, stores: "Stores") -> ClockCheck:
    """Return what compares the plant clock with the stored events."""
    keep = timedelta(days=settings.retention_days)
    return ClockCheck(RetentionStore(stores.database), keep, settings.retention_confirmed_until)


class Service:
    """One process: broker link, ingester, worker, periodic duties and web app on one store, as its roles say."""

    def __init__(self, settings: Settings, stores: Stores) -> None:
        self.settings, self.stores = settings, stores
        self.roles = settings.process_roles
        self.clock = plant_clock(settings)
        self.auth = AuthServices(settings, stores.database, self.clock)
        self.feed = EventBus(most_listeners=settings.stream_limit, most_of_one=settings.streams_per_user)
        champion, base_rates = ChampionCache(stores.versions), BaseRates(stores.events)
        self.desk = ForecastService(
            machines=stores.machines,
            log=stores.events,
            catalogue=stores.catalogue,
            champion=champion,
            base_rates=base_rates,
            clock=self.clock,
            stale_after=settings.stale_after,
        )
        self.newest = ForecastCache(self.desk, clock=self.clock, max_age=timedelta(minutes=1))
        self.registry = MachineCache(stores.machines)
        self.ingester = Ingester(
            registry=self.registry,
            recorder=stores.events,
            clock=self.clock,
            policy=time_policy(settings),
            limits=BatchLimits(settings.ingest_batch_events, settings.ingest_batch_ms / 1000),
            touched=self.on_events_stored,
            late=self._on_late_events,
            inbox=InboxLimits(settings.ingest_receive_maximum, settings.ingest_inbox_mb << 20),
            feed=self.feed,
            stale_after=settings.stale_after,
        )
        self.watch = BrokerStats(queue_alarm=settings.broker_queue_warning)
        member, hearing = process_info(settings, wall_now()), self._hearing()
        name = settings.broker_client_id
        self.link = MqttClient(
            broker_config(settings),
            client_id=name if hearing is SubscriptionMode.EXCLUSIVE else f"{name}/{member.name}",
            receive_maximum=settings.ingest_receive_maximum,
            deliver=self.ingester.on_message,
            watch=self.watch,
            hearing=hearing,
        )
        self.silence = SilenceDetector(stores.machines, stores.events, self.newest.version)
        self.quarantine = QuarantineStore(stores.database)
        announcer = ForecastPublisher(self.link)
        self.notifications = notifications.build(
            settings,
            stores.database,
            machines=stores.machines,
            events=stores.events,
            clock=self.clock,
            wall=wall_now,
            on_change=self._on_suppression_changed,
        )
        self.rhythm = ForecastThread(
            ForecastScheduler(
                desk=self.desk,
                newest=self.newest,
                machines=stores.machines,
                stored=stores.forecasts,
                mqtt=announcer,
                clock=self.clock,
                step=timedelta(minutes=settings.grid_minutes),
                local_feed=self.feed if ProcessRole.API in self.roles else None,
                is_leader=self.is_leader,
                listeners=(self.notifications.service.on_forecast,),
            )
        )
        self.credentials = broker_access.build(settings, stores.machines, self.clock)
        self.reconciler = Reconciler(
            self.credentials, connections=lambda: self.link.connect_count, is_leader=self.is_leader
        )
        self.expiry = CertificateExpiry(settings, broker=lambda: self.link.certificate_ends, now=wall_now)
        self.backups = BackupWatch(settings, now=wall_now)
        learning = build_learning(
            settings,
            stores.database,
            stores.versions,
            self.clock,
            time_policy=time_policy(settings),
            publisher=announcer,
            credentials=self.credentials,
            callbacks=LearningCallbacks(self.is_leader, self._jobs_changed, self._after_learning),
        )
        self.enrolment, self.history = learning.enrolment, learning.history
        self.job_watch, self.worker = learning.job_watch, learning.worker
        self.feed.when_closed.append(self.job_watch.close)
        self.clock_check = clock_check(settings, stores)
        self.housekeeping = MaintenanceThread(
            own=[
                *([self._look_for_silence] if ProcessRole.API in self.roles else []),
                self._delete_stale_files,
                stores.database.truncate_wal,
                release_free_memory,
                lambda: self.clock_check.look(self.clock.now()),
            ],
            shared=[self.enrolment.queue_refreshes],
            retention=retention(settings, stores),
            clock=self.clock,
            leads=self.is_leader,
            trusted=self.clock_check.trusted,
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
        hearsay = RemoteChangeHandler(
            machines=stores.machines,
            registry=self.registry,
            newest=self.newest,
            base_rates=base_rates,
            champion=champion,
            feed=self.feed,
            access=self.auth.authenticator,
            notify=self.notifications.service,
            enrolment=self.enrolment,
            job_watch=self.job_watch,
        )
        hooks = ClusterCallbacks(self._report, hearsay.handle, hearsay.invalidate_all, self.link.set_leader)
        self.company: SingleProcess = (
            SingleProcess()
            if stores.database.is_sqlite
            else PostgresCluster(member, stores.database, self.feed, hooks)
        )
        self.auth.authenticator.on_invalidate = lambda: self.company.publish(
            ChangeEvent(ChangeKind.PERMISSIONS_CHANGED)
        )
        self.condition = StatusService(
            settings=settings,
            stores=stores,
            clock=self.clock,
            ingester=self.ingester,
            link=self.link,
            watch=self.watch,
            feed=self.feed,
            quarantine=self.quarantine,
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
            ingester=self.ingester,
            desk=self.desk,
            newest=self.newest,
            champion=champion,
            silence=self.silence,
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

    def on_events_stored(self, machines: Iterable[MachineId]) -> None:
        """Note that something arrived for these machines, here and elsewhere."""
        names = list(machines)
        self.newest.invalidate(names)
        self.company.touched(names)

    def on_history_loaded(self, machine: MachineId) -> None:
        """Note that a machine's past was loaded: it may be learned now."""
        self.on_events_stored([machine])
        self.enrolment.invalidate()
        self.company.publish(ChangeEvent(ChangeKind.HISTORY_LOADED))

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
            self.ingester.start(self.link)
        self.link.start()
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
            self.ingester.stop()
        self.company.stop()
        self.link.stop()
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
            Server(config, ending=self.feed.close, limits=limits).run(sockets=[listener])
        finally:
            self.stop()

    def health(self, sees: Callable[[str], bool] = lambda _site: True) -> Health:
        """Say how every part is; warnings name machines of those sites only that the asker sees."""
        return health_of(self, sees)

    def _hearing(self) -> SubscriptionMode:
        """Say what is listened to at the broker: all, or, where there may be others, a share of it, or in turn."""
        if ProcessRole.INGEST not in self.roles:
            return SubscriptionMode.NONE
        if self.stores.database.is_sqlite:
            return SubscriptionMode.EXCLUSIVE
        return (
            SubscriptionMode.SHARED
            if self.settings.broker_mqtt_version is MqttVersion.V5
            else SubscriptionMode.LEADER_ONLY
        )

    def _threads(self) -> list[BackgroundThread]:
        """Return the threads of this process's roles, in the order in which they are stopped."""
        api, worker = ProcessRole.API in self.roles, ProcessRole.WORKER in self.roles
        learning: list[BackgroundThread] = [self.worker, self.scoring.thread] if worker else []
        looking: list[BackgroundThread] = [self.housekeeping, *([self.rhythm] if api or worker else [])]
        sending: list[BackgroundThread] = [self.notifications.thread, self.notifications.sender] if worker else []
        return [*learning, *looking, *sending, *([self.reconciler] if api or worker else [])]

    def _on_late_events(self, machines: Iterable[Machine]) -> None:
        found = list(machines)
        self.desk.base_rates.note_late(found)
        self.company.late(found)

    def _on_suppression_changed(self, site: str, machine: str | None) -> None:
        self.notifications.service.reevaluate(site, machine)
        self.company.publish(ChangeEvent(ChangeKind.SUPPRESSION_CHANGED, {"site": site, "machine": machine}))

    def _look_for_silence(self) -> None:
        self.silence.refresh(self.clock.now())

    def _delete_stale_files(self) -> None:
        """Delete from this host's folder what nobody needs: let go by another host, or left by who was killed."""
        old = (wall_now() - _STALE_FILE_AGE).timestamp()
        self.stores.versions.clear_folder(older_than=old)
        self.worker.sweep(older_than=old)
        self.history.sweep(older_than=old)

    def _jobs_changed(self) -> None:
        self.company.publish(ChangeEvent(ChangeKind.JOBS))

    def _report(self, turns: tuple[str, ...]) -> HealthReport:
        health = self.health()
        rate = round(self.ingester.pace.rate(60), 3)
        return HealthReport(health.ready, health.errors, turns, rate)

    def _after_learning(self) -> None:
        """Serve the new version at once, and let go of old ones; only now may there be one too many."""
        self.desk.champion.invalidate()
        self.stores.versions.prune(keep=self.settings.keep_versions)
