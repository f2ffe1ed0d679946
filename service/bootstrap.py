"""The only place that builds objects: settings in, a running service or an open store out."""

import json
import logging
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from paho.mqtt.enums import MQTTProtocolVersion
from pydantic import ValidationError

from forecasting.history import HistorySpec
from forecasting.network import Network
from forecasting.window import WindowSpec
from service import __version__
from service.broker.announcer import ForecastAnnouncer
from service.broker.inbox import BatchLimits, InboxLimits
from service.broker.ingester import Ingester
from service.broker.link import BrokerAddress, Link
from service.broker.watch import BrokerWatch
from service.core.enrolment import Curriculum
from service.core.gate import Limits
from service.core.health import Health
from service.core.job import Job, Progress
from service.core.samples import Samples
from service.errors import InputRejected, NoChampion, Unavailable
from service.flows.base_rates import BaseRates
from service.flows.champion import Champion
from service.flows.enrol import Enrolment, wall_now
from service.flows.forecast import ForecastDesk
from service.flows.load_history import HistoryLoader
from service.flows.newest import NewestForecasts
from service.flows.record_events import TimePolicy
from service.flows.refresh import Refresh
from service.flows.registry import Registry
from service.flows.replay import Replay
from service.flows.retention import Retention
from service.flows.schooling import School
from service.flows.score import Scoring
from service.flows.scoreboard import Scoreboard
from service.flows.silence import SilenceWatch
from service.flows.versions import VersionDesk
from service.settings import IntegrityCheck, MqttVersion, Settings, unknown_variables
from service.store.audit import AuditStore
from service.store.catalogue import CatalogueStore
from service.store.engine import Database
from service.store.enrolments import EnrolmentStore
from service.store.events import EventStore
from service.store.exams import ExamStore
from service.store.forecasts import ForecastStore
from service.store.handover import hand_over, take_over
from service.store.jobs import JobStore
from service.store.lock import WriterLock
from service.store.machines import MachineStore
from service.store.memories import MemoryStore
from service.store.outcomes import OutcomeStore
from service.store.quarantine import QuarantineStore
from service.store.retention import RetentionStore
from service.store.updates import UpdateStore
from service.store.versions import VersionStore
from service.store.weights import WeightsFolder
from service.web.app import create_app
from service.web.parts import Parts
from service.worker.apprentice import HANDOVER, Apprentice
from service.worker.housekeeping import Housekeeping
from service.worker.rhythm import Rhythm
from service.worker.scorekeeper import Scorekeeper
from service.worker.worker import Worker
from wire.clock import PlantClock
from wire.identity import MachineId
from wire.topics import PREFIX

log = logging.getLogger(__name__)


def load_settings(**overrides: Any) -> Settings:
    """Read the settings from the environment, with flags on top; a mistake is one sentence."""
    unknown = unknown_variables()
    if unknown:
        raise InputRejected(f"There is no setting {unknown[0]}; unset it or correct its name.")
    try:
        return Settings(**{name: value for name, value in overrides.items() if value is not None})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0]) if first["loc"] else "settings"
        raise InputRejected(f"The setting {name} (ALARMCAST_{name.upper()}) is wrong: {first['msg']}.") from None


def plant_clock(settings: Settings) -> PlantClock:
    """Return the plant's clock."""
    return PlantClock(settings.clock_wall_origin, settings.clock_plant_origin, settings.clock_speed)


def window_spec(settings: Settings) -> WindowSpec:
    """Return how far forecasts look back and ahead."""
    return WindowSpec(timedelta(minutes=settings.lookback_minutes), timedelta(minutes=settings.horizon_minutes))


def curriculum(settings: Settings) -> Curriculum:
    """Return how a machine's windows are shared out, and how many there must be."""
    return Curriculum(fewest=settings.min_training_windows, keep=timedelta(days=settings.retention_days))


def time_policy(settings: Settings) -> TimePolicy:
    """Return which event times are believed."""
    return TimePolicy(timedelta(minutes=settings.future_minutes), timedelta(days=settings.retention_days))


def retention(settings: Settings, stores: "Stores") -> Retention:
    """Return what is kept for how long."""
    return Retention(
        RetentionStore(stores.database),
        keep=timedelta(days=settings.retention_days),
        keep_quarantined=timedelta(days=settings.quarantine_days),
        most_bytes=None if settings.retention_gb is None else int(settings.retention_gb * 1e9),
    )


@dataclass(frozen=True)
class Stores:
    """The open store, in its parts."""

    database: Database
    machines: MachineStore
    events: EventStore
    catalogue: CatalogueStore
    versions: VersionStore
    forecasts: ForecastStore
    jobs: JobStore
    enrolments: EnrolmentStore
    exams: ExamStore
    memories: MemoryStore
    updates: UpdateStore
    audit: AuditStore
    lock: WriterLock
    outcomes: OutcomeStore


@contextmanager
def open_stores(settings: Settings, *, check: bool = False) -> Iterator[Stores]:
    """Open the store for writing, its schema brought up to date; on SQLite this process is then the writer.

    With ``check`` the file is read through first, and a damaged one is refused with the way back.
    """
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputRejected(
            f"Cannot make the folder {settings.data_dir}: {error.strerror}. Choose another."
        ) from None
    database = Database(settings.database_url or _sqlite_url(settings.data_dir))
    lock = WriterLock(settings.data_dir / "alarmcast.lock")
    if database.is_sqlite:
        lock.acquire()
    try:
        if check and settings.integrity_check is not IntegrityCheck.OFF:
            database.check(thorough=settings.integrity_check is IntegrityCheck.FULL)
        database.upgrade()
        yield Stores(
            database,
            MachineStore(database),
            EventStore(database),
            CatalogueStore(database),
            VersionStore(database, WeightsFolder(settings.data_dir / "weights")),
            ForecastStore(database),
            JobStore(database),
            EnrolmentStore(database),
            ExamStore(database),
            MemoryStore(database),
            UpdateStore(database),
            AuditStore(database),
            lock,
            OutcomeStore(database),
        )
    finally:
        database.close()
        lock.release()


class Service:
    """The running whole: broker link, ingester, rhythm and web app on one store."""

    def __init__(self, settings: Settings, stores: Stores) -> None:
        self.settings, self.stores = settings, stores
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
        )
        self.watch = BrokerWatch(queue_alarm=settings.broker_queue_alarm)
        self.link = Link(
            _broker_address(settings),
            client_id=settings.broker_client_id,
            receive_maximum=settings.ingest_receive_maximum,
            deliver=self.ingester.deliver,
            watch=self.watch,
        )
        self.silence = SilenceWatch(stores.machines, stores.events)
        quarantine = QuarantineStore(stores.database)
        announcer = ForecastAnnouncer(self.link)
        self.rhythm = Rhythm(
            Refresh(
                desk=self.desk,
                newest=self.newest,
                machines=stores.machines,
                stored=stores.forecasts,
                announcer=announcer,
                clock=self.clock,
                step=timedelta(minutes=settings.grid_minutes),
            )
        )
        self.enrolment = Enrolment(
            machines=stores.machines,
            enrolments=stores.enrolments,
            jobs=stores.jobs,
            log=stores.events,
            school=School(stores.machines, stores.events, window_spec(settings), curriculum(settings)),
            clock=self.clock,
            announcer=announcer,
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
        self.app = create_app(
            Parts(
                machines=stores.machines,
                log=stores.events,
                catalogue=stores.catalogue,
                desk=self.desk,
                newest=self.newest,
                clock=self.clock,
                health=self.health,
                enrolment=self.enrolment,
                jobs=stores.jobs,
                versions=stores.versions,
                version_desk=VersionDesk(stores.versions, self.clock),
                exams=stores.exams,
                history=self.history,
                scoreboard=Scoreboard(stores.machines, stores.outcomes, self.clock, grace),
                quarantine=quarantine,
                replay=Replay(
                    quarantine, stores.events, registry, self.clock, time_policy(settings), self.newest.touch
                ),
                silence=self.silence,
            )
        )

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

    def stop(self) -> None:
        """Stop taking messages, finish the batch at hand, end."""
        self.history.stop()
        self.worker.stop()
        self.scorekeeper.stop()
        self.housekeeping.stop()
        self.rhythm.stop()
        self.ingester.stop()
        self.link.stop()

    def run(self, listener: socket.socket) -> None:
        """Serve until SIGTERM or SIGINT."""
        self.stores.lock.announce(url_of(listener))
        # uvicorn raises the signal again once it has stopped; we still have to finish the batch at hand.
        for ending in (signal.SIGTERM, signal.SIGINT):
            signal.signal(ending, lambda *_: None)
        self.start()
        try:
            config = uvicorn.Config(self.app, log_config=None, access_log=False, timeout_graceful_shutdown=5)
            uvicorn.Server(config).run(sockets=[listener])
        finally:
            self.stop()

    def health(self) -> Health:
        """Say how every part is."""
        troubles = {
            "broker": self.link.complaint,
            "broker_thread": None if self.link.is_alive else "the network thread has ended",
            "ingest": self.ingester.complaint or (None if self.ingester.is_alive else "the ingester has ended"),
            "forecasts": self.rhythm.trouble,
            "learning": self.worker.trouble,
            "scores": self.scorekeeper.trouble,
            "housekeeping": self.housekeeping.trouble,
            "database": self._database_trouble(),
        }
        version, trouble = self._model()
        troubles["model"] = trouble
        return Health(
            {part: why for part, why in troubles.items() if why},
            dict(self.ingester.counts)
            | {"forecasts_stored": self.rhythm.made, "forecasts_scored": self.scorekeeper.scored}
            | {"events_forgotten": self.housekeeping.forgotten}
            | {"sent_back": sum(self.ingester.sent_back.values())}
            | self.watch.counts,
            version,
            self._warnings(),
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

    def _warnings(self) -> dict[str, str]:
        told = self.watch.warnings()
        twins = self.ingester.twins.seen(self.clock.now())
        if twins:
            names = ", ".join(str(machine) for machine in twins)
            told["two_agents"] = f"Two agents take turns to speak as {names}; stop one, or give it its own name."
        if self.silence.found:
            names = ", ".join(str(one.machine) for one in self.silence.found[:10])
            told["silent"] = f"{len(self.silence.found)} machines are silent against their rhythm: {names}."
        flooding = [name.removeprefix(f"{PREFIX}/") for name, _ in self.ingester.sent_back.most_common(3)]
        if flooding:
            told["flood"] = (
                f"More came than fits at a time, most of it from {', '.join(flooding)}; it is sent again."
            )
        return told

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


def learn_job(
    settings: Settings, *, machine: MachineId, now: datetime, folder: Path, told: Callable[[Progress], None]
) -> None:
    """Learn a machine in this process, which loads torch and never writes to the database; leave the result."""
    from service.flows.examination import Examination  # noqa: PLC0415 - the serving process never comes here
    from service.flows.learn import Learning  # noqa: PLC0415
    from service.learning.presets import PRESETS  # noqa: PLC0415
    from service.learning.trainer import Progress as Epoch  # noqa: PLC0415
    from service.learning.trainer import train  # noqa: PLC0415

    preset = PRESETS["product"]

    def fit(
        start: Network | None,
        new: Samples,
        replay: Samples | None,
        *,
        rng: np.random.Generator,
        told: Callable[[Progress], None],
    ) -> Network:
        began = time.monotonic()

        def tell(epoch: Epoch) -> None:
            left = (time.monotonic() - began) / epoch.epoch * (epoch.epochs - epoch.epoch)
            told(Progress("training", epoch.epoch, epoch.epochs, round(epoch.loss, 5), round(left, 1)))

        return train(start, new, replay=replay, spec=preset.training, rng=rng, progress=tell)

    database = Database(settings.database_url or _sqlite_url(settings.data_dir), read_only=True)
    weights = WeightsFolder(settings.data_dir / "weights")
    try:
        machines, events = MachineStore(database), EventStore(database)
        learning = Learning(
            school=School(machines, events, window_spec(settings), curriculum(settings)),
            catalogue=CatalogueStore(database),
            versions=VersionStore(database, weights),
            memories=MemoryStore(database),
            examination=Examination(ExamStore(database), Limits(max_forgetting=settings.max_forgetting)),
            weights=weights,
            recipe=preset.recipe("bat-ocdm", memory=settings.memory_windows),
            history=HistorySpec(),
            code_version=__version__,
        )
        candidate = learning.learn(machines.get(machine), now=now, train=fit, told=told)
    finally:
        database.close()
    hand_over(candidate, folder / HANDOVER)


def listen(host: str, port: int) -> socket.socket:
    """Bind the API's port, or say in a sentence that it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named, because asyncio sets TCP_NODELAY only then; without it every answer waits 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise InputRejected(
            f"Cannot listen on {host}:{port}: {error.strerror}. Choose another address or port: --host, --port."
        ) from None
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the address at which a bound socket is reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _sqlite_url(data_dir: Path) -> str:
    return f"sqlite:///{data_dir.resolve() / 'alarmcast.sqlite3'}"


def _broker_address(settings: Settings) -> BrokerAddress:
    v5 = settings.broker_mqtt_version is MqttVersion.V5
    return BrokerAddress(
        settings.broker_host,
        settings.broker_port,
        MQTTProtocolVersion.MQTTv5 if v5 else MQTTProtocolVersion.MQTTv311,
        settings.broker_username,
        settings.broker_password,
        settings.broker_tls,
        settings.broker_tls_ca,
    )
