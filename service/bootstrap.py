"""The only place that builds objects: settings in, a running service or an open store out."""

import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import uvicorn
from paho.mqtt.enums import MQTTProtocolVersion
from pydantic import ValidationError

from forecasting.network import Network
from forecasting.window import WindowSpec
from service.broker.announcer import ForecastAnnouncer
from service.broker.ingester import BatchLimits, Ingester
from service.broker.link import BrokerAddress, Link
from service.core.health import Health
from service.core.samples import Samples
from service.core.version import Version
from service.errors import InputRejected, NoChampion, Unavailable
from service.flows.base_rates import BaseRates
from service.flows.champion import Champion
from service.flows.forecast import ForecastDesk
from service.flows.learn import Learning
from service.flows.newest import NewestForecasts
from service.flows.record_events import TimePolicy
from service.flows.refresh import Refresh
from service.flows.registry import Registry
from service.settings import MqttVersion, Settings, unknown_variables
from service.store.catalogue import CatalogueStore
from service.store.engine import Database
from service.store.events import EventStore
from service.store.forecasts import ForecastStore
from service.store.lock import WriterLock
from service.store.machines import MachineStore
from service.store.versions import VersionStore
from service.store.weights import WeightsFolder
from service.web.app import create_app
from service.web.parts import Parts
from service.worker.rhythm import Rhythm
from wire.clock import PlantClock

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


def time_policy(settings: Settings) -> TimePolicy:
    """Return which event times are believed."""
    return TimePolicy(timedelta(minutes=settings.future_minutes), timedelta(days=settings.retention_days))


@dataclass(frozen=True)
class Stores:
    """The open store, in its parts."""

    database: Database
    machines: MachineStore
    events: EventStore
    catalogue: CatalogueStore
    versions: VersionStore
    forecasts: ForecastStore
    lock: WriterLock


@contextmanager
def open_stores(settings: Settings) -> Iterator[Stores]:
    """Open the store for writing, its schema brought up to date; on SQLite this process is then the writer."""
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
        database.upgrade()
        yield Stores(
            database,
            MachineStore(database),
            EventStore(database),
            CatalogueStore(database),
            VersionStore(database, WeightsFolder(settings.data_dir / "weights")),
            ForecastStore(database),
            lock,
        )
    finally:
        database.close()
        lock.release()


class Service:
    """The running whole: broker link, ingester, rhythm and web app on one store."""

    def __init__(self, settings: Settings, stores: Stores) -> None:
        self._settings, self.stores = settings, stores
        self.clock = plant_clock(settings)
        self._champion = Champion(stores.versions)
        self.desk = ForecastDesk(
            machines=stores.machines,
            log=stores.events,
            catalogue=stores.catalogue,
            champion=self._champion,
            base_rates=BaseRates(stores.events),
            clock=self.clock,
            stale_after=settings.stale_after,
        )
        self.newest = NewestForecasts(self.desk, clock=self.clock, max_age=timedelta(minutes=1))
        self.ingester = Ingester(
            registry=Registry(stores.machines),
            recorder=stores.events,
            clock=self.clock,
            policy=time_policy(settings),
            limits=BatchLimits(settings.ingest_batch_events, settings.ingest_batch_ms / 1000),
            touched=self.newest.touch,
        )
        self.link = Link(
            _broker_address(settings),
            client_id=settings.broker_client_id,
            receive_maximum=settings.ingest_receive_maximum,
            deliver=self.ingester.deliver,
        )
        self.rhythm = Rhythm(
            Refresh(
                desk=self.desk,
                newest=self.newest,
                machines=stores.machines,
                stored=stores.forecasts,
                announcer=ForecastAnnouncer(self.link),
                clock=self.clock,
                step=timedelta(minutes=settings.grid_minutes),
            )
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
            )
        )

    def start(self) -> None:
        """Start what runs beside the web app."""
        self.ingester.start(self.link)
        self.link.start()
        self.rhythm.start()

    def stop(self) -> None:
        """Stop taking messages, finish the batch at hand, end."""
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
            "forecasts": self.rhythm.complaint or (None if self.rhythm.is_alive else "the rhythm has ended"),
            "database": self._database_trouble(),
        }
        version, trouble = self._model()
        troubles["model"] = trouble
        return Health(
            {part: why for part, why in troubles.items() if why},
            dict(self.ingester.counts) | {"forecasts_stored": self.rhythm.made},
            version,
        )

    def _database_trouble(self) -> str | None:
        try:
            self.stores.database.ping()
        except Unavailable as error:
            return str(error)
        return None

    def _model(self) -> tuple[str | None, str | None]:
        try:
            return self._champion.current().version.name, None
        except NoChampion:
            return (
                None,
                None,
            )  # young, not ill: events are taken, and the forecast endpoint says what is missing
        except Unavailable as error:
            return None, str(error)


def learn_first_model(settings: Settings, *, epochs: int, seed: int, progress: Callable[[int], None]) -> Version:
    """Learn from all stored history in this process, which loads torch; the serving one never calls this."""
    import numpy as np  # noqa: PLC0415

    from service.learning.trainer import TrainingSpec, train  # noqa: PLC0415

    def trainer(samples: Samples, tell: Callable[[int], None]) -> Network:
        return train(
            None,
            samples,
            spec=TrainingSpec(epochs=epochs),
            rng=np.random.default_rng(seed),
            progress=lambda made: tell(made.epoch),
        )

    with open_stores(settings) as stores:
        learning = Learning(
            machines=stores.machines,
            log=stores.events,
            catalogue=stores.catalogue,
            versions=stores.versions,
            spec=window_spec(settings),
            keep=timedelta(days=settings.retention_days),
        )
        return learning.first_model(trainer, now=plant_clock(settings).now(), progress=progress)


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
    )
