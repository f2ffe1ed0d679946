"""The running whole, every object of it built here."""

import json
import random
import secrets
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx
from starlette.types import ASGIApp

from alarmcast import AsyncClient
from service import __version__
from service.bootstrap.collector import settle, undisturbed
from service.bootstrap.condition import ConditionDesk
from service.bootstrap.configuration import (
    agent_access,
    broker_address,
    curriculum,
    dynamic_security,
    plant_clock,
    time_policy,
    window_spec,
)
from service.bootstrap.expiry import Expiry
from service.bootstrap.listening import Server, server_config, url_of
from service.bootstrap.metrics import Metrics
from service.bootstrap.people import Gatehouse
from service.bootstrap.stores import Stores
from service.broker.announcer import ForecastAnnouncer
from service.broker.inbox import BatchLimits, InboxLimits
from service.broker.ingester import Ingester
from service.broker.link import Link
from service.broker.watch import BrokerWatch
from service.core.credential import Guard
from service.core.health import Health
from service.core.job import Job
from service.core.notice import Habits
from service.core.principal import sees as asker_sees
from service.core.principal import sites_asked
from service.errors import NoChampion, Unavailable
from service.flows.base_rates import BaseRates
from service.flows.champion import Champion
from service.flows.credentials import CredentialDesk
from service.flows.enrol import Enrolment, wall_now
from service.flows.explain import ExplanationDesk
from service.flows.export import AlarmExport
from service.flows.feed import Announcers, Feed
from service.flows.figures import FiguresDesk
from service.flows.fleet import FleetBoard, Sources
from service.flows.forecast import ForecastDesk
from service.flows.hush import HushDesk
from service.flows.load_history import HistoryLoader
from service.flows.newest import NewestForecasts
from service.flows.notice_board import NoticeBoard
from service.flows.notify import Notify
from service.flows.refresh import Refresh
from service.flows.registry import Registry
from service.flows.replay import Replay
from service.flows.retention import Retention
from service.flows.schooling import School
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
from service.flows.score import Scoring
from service.flows.scoreboard import Scoreboard
from service.flows.silence import SilenceWatch
from service.flows.timeline import TimelineDesk
from service.flows.versions import VersionDesk
from service.flows.webhooks import WebhookDesk
from service.settings import DynamicSecurity, Settings
from service.store.acknowledgements import AcknowledgementStore
from service.store.credentials import CredentialStore
from service.store.deliveries import DeliveryStore
from service.store.exports import AlarmExports
from service.store.handover import take_over
from service.store.maintenance import MaintenanceStore
from service.store.notices import NoticeStore
from service.store.quarantine import QuarantineStore
from service.store.retention import RetentionStore
from service.store.shelves import ShelfStore
from service.store.strips import StripStore
from service.store.webhooks import WebhookStore
from service.web.app import create_app
from service.web.observed import Observed, Traffic
from service.web.parts import Parts
from service.worker.apprentice import Apprentice
from service.worker.courier import Courier
from service.worker.housekeeping import Housekeeping
from service.worker.lookout import Lookout
from service.worker.post import HttpPost
from service.worker.reconciler import Reconciler
from service.worker.rhythm import Rhythm
from service.worker.scorekeeper import Scorekeeper
from service.worker.worker import Worker
from wire.topics import PREFIX


def retention(settings: Settings, stores: "Stores") -> Retention:
    """Return what is kept for how long."""
    return Retention(
        RetentionStore(stores.database),
        keep=timedelta(days=settings.retention_days),
        keep_quarantined=timedelta(days=settings.quarantine_days),
        most_bytes=None if settings.retention_gb is None else int(settings.retention_gb * 1e9),
    )


class Service:
    """The running whole: broker link, ingester, rhythm and web app on one store."""

    def __init__(self, settings: Settings, stores: Stores) -> None:
        self.settings, self.stores = settings, stores
        self.gatehouse = Gatehouse(settings, stores.database)
        self.clock = plant_clock(settings)
        self._champion = Champion(stores.versions)
        base_rates = BaseRates(stores.events)
        self.desk = ForecastDesk(
            machines=stores.machines,
            log=stores.events,
            catalogue=stores.catalogue,
            champion=self._champion,
            base_rates=base_rates,
            clock=self.clock,
            stale_after=settings.stale_after,
        )
        self.newest = NewestForecasts(self.desk, clock=self.clock, max_age=timedelta(minutes=1))
        self.feed = Feed(most_listeners=settings.stream_limit)
        registry = Registry(stores.machines)
        self.ingester = Ingester(
            registry=registry,
            recorder=stores.events,
            clock=self.clock,
            policy=time_policy(settings),
            limits=BatchLimits(settings.ingest_batch_events, settings.ingest_batch_ms / 1000),
            touched=self.newest.touch,
            late=base_rates.note_late,
            inbox=InboxLimits(settings.ingest_receive_maximum, settings.ingest_inbox_mb << 20),
            feed=self.feed,
        )
        self.watch = BrokerWatch(queue_alarm=settings.broker_queue_alarm)
        self.link = Link(
            broker_address(settings),
            client_id=settings.broker_client_id,
            receive_maximum=settings.ingest_receive_maximum,
            deliver=self.ingester.deliver,
            watch=self.watch,
        )
        self.silence = SilenceWatch(stores.machines, stores.events)
        quarantine = QuarantineStore(stores.database)
        announcer = ForecastAnnouncer(self.link)
        shelves, windows = ShelfStore(stores.database), MaintenanceStore(stores.database)
        acknowledgements, notices = AcknowledgementStore(stores.database), NoticeStore(stores.database)
        deliveries, post = DeliveryStore(stores.database), HttpPost(agent=f"Alarmcast/{__version__}")
        self.notify = Notify(
            machines=stores.machines,
            log=stores.events,
            notices=notices,
            shelves=shelves,
            windows=windows,
            acknowledgements=acknowledgements,
            clock=self.clock,
            wall=wall_now,
            habits=Habits(settings.notice_release, timedelta(minutes=settings.notice_quiet_minutes)),
        )
        self.hush = HushDesk(
            machines=stores.machines,
            shelves=shelves,
            windows=windows,
            acknowledgements=acknowledgements,
            clock=self.clock,
            longest_shelf=timedelta(hours=settings.shelf_max_hours),
            changed=self.notify.again,
        )
        self.lookout = Lookout(self.notify)
        self.courier = Courier(
            deliveries,
            post,
            wall=wall_now,
            plant=self.clock.now,
            chance=random.random,
        )
        self.rhythm = Rhythm(
            Refresh(
                desk=self.desk,
                newest=self.newest,
                machines=stores.machines,
                stored=stores.forecasts,
                announcer=Announcers((announcer, self.feed)),
                clock=self.clock,
                step=timedelta(minutes=settings.grid_minutes),
                told=(self.notify.told,),
            )
        )
        self.credentials = CredentialDesk(
            stores.machines,
            CredentialStore(stores.database),
            dynamic_security(settings),
            self.clock,
            agent_access(settings),
        )
        self.reconciler = Reconciler(self.credentials, connections=lambda: self.link.connections)
        self.expiry = Expiry(settings, broker=lambda: self.link.certificate_ends, now=wall_now)
        self.enrolment = Enrolment(
            machines=stores.machines,
            enrolments=stores.enrolments,
            jobs=stores.jobs,
            log=stores.events,
            school=School(stores.machines, stores.events, window_spec(settings), curriculum(settings)),
            clock=self.clock,
            announcer=announcer,
            credentials=self.credentials,
            refresh_after=timedelta(days=settings.refresh_days) if settings.refresh_days else None,
        )
        self.worker = Worker(
            jobs=stores.jobs,
            updates=stores.updates,
            admit=self.enrolment.admit,
            apprentice=self._apprentice,
            take_over=take_over,
            wall=wall_now,
            plant=self.clock.now,
            folder=settings.data_dir / "learning",
            learned=self._after_learning,
        )
        self.housekeeping = Housekeeping(
            [lambda: self.silence.look(self.clock.now()), self.enrolment.schedule],
            retention=retention(settings, stores),
            clock=self.clock,
        )
        grace = timedelta(minutes=settings.scoring_grace_minutes)
        self.scoring = Scoring(
            machines=stores.machines,
            log=stores.events,
            versions=stores.versions,
            outcomes=stores.outcomes,
            clock=self.clock,
            grace=grace,
        )
        self.scorekeeper = Scorekeeper(self.scoring)
        self.history = HistoryLoader(
            stores.machines,
            stores.events,
            self.clock,
            time_policy(settings),
            folder=settings.data_dir / "uploads",
            most_bytes=settings.history_max_mb * 1_000_000,
        )
        seen = ScopedMachines(stores.machines)
        condition = ConditionDesk(
            settings=settings,
            stores=stores,
            clock=self.clock,
            ingester=self.ingester,
            link=self.link,
            watch=self.watch,
            feed=self.feed,
            quarantine=quarantine,
            guard=lambda: self.credentials.guard,
        )
        self.traffic = Traffic()
        self.metrics = Metrics(
            settings=settings,
            stores=stores,
            clock=self.clock,
            wall=wall_now,
            health=self.health,
            condition=condition.look,
            ingester=self.ingester,
            desk=self.desk,
            newest=self.newest,
            champion=self._champion,
            silence=self.silence,
            traffic=self.traffic,
            certificates=self.expiry.ends,
            attempts=lambda: {"delivered": self.courier.delivered, "failed": self.courier.failed},
        )
        self.app = create_app(
            Parts(
                machines=seen,
                log=stores.events,
                catalogue=stores.catalogue,
                desk=self.desk,
                newest=self.newest,
                explanations=ExplanationDesk(self.desk, self.newest),
                clock=self.clock,
                health=lambda: self.health(asker_sees),
                enrolment=self.enrolment,
                credentials=self.credentials,
                jobs=ScopedJobs(stores.jobs),
                versions=ScopedVersions(stores.versions),
                version_desk=VersionDesk(stores.versions, self.clock),
                exams=ScopedExams(stores.exams),
                history=self.history,
                scoreboard=Scoreboard(seen, stores.outcomes, self.clock, grace),
                quarantine=ScopedQuarantine(quarantine),
                replay=Replay(
                    ScopedQuarantine(quarantine),
                    stores.events,
                    registry,
                    self.clock,
                    time_policy(settings),
                    self.newest.touch,
                ),
                silence=ScopedSilence(self.silence),
                fleet=ScopedFleet(
                    FleetBoard(
                        Sources(
                            machines=stores.machines,
                            strips=StripStore(stores.database),
                            catalogue=stores.catalogue,
                            champion=self._champion,
                            newest=self.newest,
                            silence=self.silence,
                            clock=self.clock,
                            stale_after=settings.stale_after,
                            shelved=self.hush.shelved,
                        ),
                        token=secrets.token_hex(4),
                    )
                ),
                feed=ScopedFeed(self.feed),
                condition=lambda: condition.look(sites_asked()),
                figures=FiguresDesk(seen, stores.events, self.clock, settings.shift_starts, self.hush.left_out),
                timelines=TimelineDesk(seen, stores.events, self.clock),
                export=AlarmExport(seen, AlarmExports(stores.database), stores.catalogue),
                hush=replace(
                    self.hush, machines=seen, shelves=ScopedShelves(shelves), windows=ScopedWindows(windows)
                ),
                notices=NoticeBoard(ScopedNotices(notices), acknowledgements, deliveries),
                webhooks=WebhookDesk(seen, ScopedWebhooks(WebhookStore(stores.database)), post, self.clock),
                sign_in=self.gatehouse.sign_in,
                people=self.gatehouse.people,
                audit=stores.audit,
                metrics=self.metrics.text,
            ),
            self.gatehouse.door,
        )

    @property
    def key(self) -> str:
        """The key of whoever runs this process; a running service leaves it in its data folder."""
        return str(self.gatehouse.local)

    def front(self) -> ASGIApp:
        """Return the API with the operators' pages around it; once a process, because NiceGUI is one."""
        with undisturbed():
            from service.page.install import with_pages  # noqa: PLC0415 - whoever asks one thing needs no page
            from service.page.reception import Reception  # noqa: PLC0415

        def client_of(key: str) -> AsyncClient:
            return AsyncClient("http://here", key=key, transport=httpx.ASGITransport(self.app))

        reception = Reception(client_of, lambda sites: client_of(self.gatehouse.page_key(sites)))
        return Observed(with_pages(self.app, reception), self.traffic)

    def start(self) -> None:
        """Start what runs beside the web app."""
        self.ingester.start(self.link)
        self.link.start()
        self.rhythm.start()
        if self.stores.database.is_sqlite:  # nobody else can be at work here
            self.stores.jobs.recover()
            self.history.sweep()
            self.worker.sweep()
        self.worker.start()
        self.scorekeeper.start()
        self.housekeeping.start()
        self.lookout.start()
        self.courier.start()
        self.reconciler.start()

    def stop(self) -> None:
        """Stop taking messages, finish the batch at hand, end."""
        self.history.stop()
        self.worker.stop()
        self.scorekeeper.stop()
        self.housekeeping.stop()
        self.rhythm.stop()
        self.lookout.stop()
        self.courier.stop()
        self.reconciler.stop()
        self.ingester.stop()
        self.link.stop()
        self.gatehouse.take_key_back()

    def announce(self, address: str) -> None:
        """Tell those who work on the same folder where the service is to be asked, and with which key."""
        self.gatehouse.leave_key()
        self.stores.lock.announce(address, self.settings.tls_cert)

    def run(self, listener: socket.socket) -> None:
        """Serve until SIGTERM or SIGINT."""
        self.announce(url_of(listener, tls=self.settings.tls_cert is not None))
        # uvicorn raises the signal again once it has stopped; we still have to finish the batch at hand.
        for ending in (signal.SIGTERM, signal.SIGINT):
            signal.signal(ending, lambda *_: None)
        self.start()
        try:
            config = server_config(self.front(), self.settings)
            config.timeout_graceful_shutdown = 5
            settle()
            Server(config, ending=self.feed.close).run(sockets=[listener])
        finally:
            self.stop()

    def health(self, sees: Callable[[str], bool] = lambda _site: True) -> Health:
        """Say how every part is; warnings name machines of those sites only that the asker sees."""
        version, trouble = self._model()
        troubles = {
            "broker": self.link.complaint,
            "broker_thread": None if self.link.is_alive else "the network thread has ended",
            "ingest": self.ingester.complaint or (None if self.ingester.is_alive else "the ingester has ended"),
            "forecasts": self.rhythm.trouble,
            "learning": self.worker.trouble,
            "scores": self.scorekeeper.trouble,
            "housekeeping": self.housekeeping.trouble,
            "notices": self.lookout.trouble,
            "deliveries": self.courier.trouble,
            "credentials": self._credential_trouble(),
            "database": self._database_trouble(),
            "model": trouble,
        }
        return Health(
            {part: why for part, why in troubles.items() if why},
            dict(self.ingester.counts)
            | {"forecasts_stored": self.rhythm.made, "forecasts_scored": self.scorekeeper.scored}
            | {"events_forgotten": self.housekeeping.forgotten}
            | {"notices_opened": self.notify.opened, "notices_delivered": self.courier.delivered}
            | {"sent_back": sum(self.ingester.sent_back.values())}
            | self.watch.counts,
            version,
            self._warnings(sees),
            tuple(troubles),
        )

    def _apprentice(self, job: Job, folder: Path) -> Apprentice:
        orders = {
            "settings": json.loads(self.settings.model_dump_json()),
            "machine": str(job.machine),
            "now": self.clock.now().isoformat(),
        }
        return Apprentice([sys.executable, "-m", "service", "apprentice"], orders, folder)

    def _after_learning(self) -> None:
        """Serve the new version at once, and let go of old ones; only now may there be one too many."""
        self._champion.look_again()
        self.stores.versions.prune(keep=self.settings.keep_versions)

    def _warnings(self, sees: Callable[[str], bool]) -> dict[str, str]:
        told = self.watch.warnings() | self._credential_warnings()
        twins = [one for one in self.ingester.twins.seen(self.clock.now()) if sees(one.site)]
        if twins:
            names = ", ".join(str(machine) for machine in twins)
            told["two_agents"] = f"Two agents take turns to speak as {names}; stop one, or give it its own name."
        silent = [one for one in self.silence.found if sees(one.machine.site)]
        if silent:
            names = ", ".join(str(one.machine) for one in silent[:10])
            told["silent"] = f"{len(silent)} machines are silent against their rhythm: {names}."
        senders = (name.removeprefix(f"{PREFIX}/") for name, _ in self.ingester.sent_back.most_common())
        flooding = [name for name in senders if sees(name.partition("/")[0])][:3]
        if flooding:
            told["flood"] = (
                f"More came than fits at a time, most of it from {', '.join(flooding)}; it is sent again."
            )
        return told

    def _credential_trouble(self) -> str | None:
        """Say what is wrong with who may come in; that the broker is away is said elsewhere."""
        if self.settings.broker_dynamic_security is DynamicSecurity.ON and self.credentials.guard is Guard.OFF:
            return f"broker_dynamic_security is on, but {self.credentials.why_not}"
        return self.reconciler.trouble if self.link.connected else None

    def _credential_warnings(self) -> dict[str, str]:
        told: dict[str, str] = {}
        if self.credentials.guard is Guard.OFF:
            told["broker_open"] = (
                f"Anybody who reaches the broker may speak as any machine, as far as this service can tell: "
                f"{self.credentials.why_not}. To have it guarded: alarmcast admin broker-init"
            )
        if self.credentials.locked_out:
            names = ", ".join(str(machine) for machine in self.credentials.locked_out[:10])
            told["locked_out"] = (
                f"The broker does not let in {len(self.credentials.locked_out)} machines: {names}. It has lost "
                "their passwords or keeps them out; issue new ones: alarmcast admin machine rotate SITE/MACHINE"
            )
        return told | self.expiry.warnings()

    def _database_trouble(self) -> str | None:
        try:
            self.stores.database.ping()
        except Unavailable as error:
            return str(error)
        return None

    def _model(self) -> tuple[str | None, str | None]:
        try:
            return self._champion.current().version.name, self._champion.complaint
        except NoChampion:  # young, not ill: events are taken, and the forecast endpoint says what is missing
            return None, None
        except Unavailable as error:
            return None, str(error)
