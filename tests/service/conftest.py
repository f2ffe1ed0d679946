"""A store on disk, a small real model, and the app on top, without a broker."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
from sqlalchemy import update
from starlette.types import Receive, Scope, Send

from forecasting.calibration import Calibration
from forecasting.forecaster import Forecaster
from forecasting.network import Layer, Network
from forecasting.vocabulary import Vocabulary
from forecasting.window import WindowSpec
from service.app.configuration import load_settings
from service.app.service import Service
from service.app.stores import Stores, open_stores
from service.database.backup import DATABASE
from service.database.engine import Database
from service.database.event_row import EventRow
from service.database.tables import jobs
from service.learning.enrolment_store import EnrolmentStore
from service.learning.models import NewMachine
from service.learning.thread import TrainingWorker
from service.learning.training_process import TrainingProcess, WarmProcessPool
from service.machines.catalogue import CatalogueEntry
from service.machines.events import EventWrite
from service.machines.models import Agent, Machine
from service.machines.store import MachineStore
from service.settings import Settings
from tests.conftest import require
from tests.support.api_client import Client
from tests.support.databases import new_sqlite
from tests.support.secured_broker import GuardedMosquitto, guarded_in, has_plugin
from wire.identity import MachineId
from wire.timestamps import to_us

NOW = datetime(2026, 11, 16, 8, 7, tzinfo=UTC)
FILLER = MachineId("padova", "filler-1")
EPOCH = UUID("0f9d9a3c-9d0e-4a39-8f0a-5b8f3c9c2a11")


def still_settings(data_dir: Path, **more: Any) -> Settings:
    """Return settings whose plant clock hardly moves, so that a test knows what time it is."""
    return load_settings(
        data_dir=data_dir,
        clock_wall_origin=datetime.now(UTC),
        clock_plant_origin=NOW,
        clock_speed=0.001,
        webhook_networks="127.0.0.0/8",
        **more,
    )


@contextmanager
def new_stores(settings: Settings) -> Iterator[Stores]:
    """Open the stores of an empty database."""
    if settings.database_url is None:
        new_sqlite(settings.data_dir / DATABASE)
    with open_stores(settings) as opened:
        yield opened


@pytest.fixture(scope="session")
def shared_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with a machine and a champion, for tests that change nothing: building one costs 0.2 s."""
    settings = still_settings(tmp_path_factory.mktemp("shared") / "data", rate_per_second=0)
    with new_stores(settings) as stores:
        enrolled(stores.enrolments, FILLER, name="Filler 1", time_zone="Europe/Rome")
        add_champion(stores)
        yield Service(settings, stores)


@pytest.fixture
def shared_client(shared_service: Service) -> Client:
    return Client(shared_service)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return still_settings(tmp_path / "data")


@pytest.fixture
def stores(settings: Settings) -> Iterator[Stores]:
    with new_stores(settings) as opened:
        yield opened


@pytest.fixture
def filler(stores: Stores) -> Machine:
    return enrolled(stores.enrolments, FILLER, name="Filler 1", time_zone="Europe/Rome")


@pytest.fixture
def service(settings: Settings, stores: Stores) -> Service:
    return Service(settings, stores)


@dataclass(frozen=True)
class Trusted:
    """The app as it is to whoever runs it: a request that brings no key has that of the service itself."""

    service: Service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not any(name == b"authorization" for name, _ in scope["headers"]):
            bearer = (b"authorization", f"Bearer {self.service.key}".encode())
            scope = {**scope, "headers": [*scope["headers"], bearer]}
        await self.service.app(scope, receive, send)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[GuardedMosquitto]:
    """A guarded broker, real and empty."""
    require(has_plugin(), "mosquitto with its dynamic-security plugin")
    broker = guarded_in(tmp_path / "guarded")
    broker.start()
    yield broker
    broker.kill()


def small_model(
    *, targets: tuple[int, ...] = (139, 26), seed: int = 1, horizon: timedelta = timedelta(minutes=480)
) -> Forecaster:
    """Return a model with random weights: small, but served exactly like a learned one."""
    rng = np.random.default_rng(seed)
    inputs = (26, 137, 139)
    layers = tuple(
        Layer(rng.normal(size=(out, into)).astype(np.float32), rng.normal(size=out).astype(np.float32))
        for into, out in ((len(inputs), 8), (8, len(targets)))
    )
    return Forecaster(
        WindowSpec(horizon=horizon),
        Vocabulary(inputs, targets),
        Network(layers),
        Calibration.identity(len(targets)),
        np.full(len(targets), 0.5, dtype=np.float32),
    )


def add_champion(stores: Stores) -> Forecaster:
    """Promote a model and add the catalogue of its targets."""
    stores.catalogue.merge(
        [
            CatalogueEntry(139, "Film torn", "high", target=True),
            CatalogueEntry(26, "Door open", "low", target=True),
        ]
    )
    model = small_model()
    stores.versions.add_and_promote(model, report={"summary": "small"}, at=NOW - timedelta(days=1))
    return model


@pytest.fixture
def champion(stores: Stores) -> Forecaster:
    return add_champion(stores)


def enrolled(
    enrolments: EnrolmentStore, machine: MachineId, *, name: str = "Filler", time_zone: str = "UTC"
) -> Machine:
    """Enrol a machine and return it."""
    enrolments.enrol(NewMachine(machine, name, time_zone), key=None, who="test", at=NOW, plant_at=NOW)
    return MachineStore(enrolments.database).get(machine)


def raise_alarms(
    stores: Stores, machine: Machine, *alarms: tuple[datetime, int], epoch: UUID | None = None
) -> None:
    """Store alarms as if an agent had sent them."""
    used = epoch or uuid4()
    rows = [
        EventRow(machine.row_id, used, seq, code, to_us(at), 0) for seq, (at, code) in enumerate(alarms, start=1)
    ]
    stores.events.commit(EventWrite(to_us(NOW), events=rows))


def lapse(database: Database, lease: timedelta) -> None:
    """Let the lease of every job expire."""
    with database.write() as connection:
        connection.execute(update(jobs).values(lease_us=jobs.c.lease_us - lease // timedelta(microseconds=1)))


def connect_agent(stores: Stores, machine: Machine, *, at: datetime = NOW, online: bool = True) -> None:
    """Store that the agent of a machine has connected."""
    agent = Agent(online=online, last_seen_at=at, version="1", epoch=EPOCH, spooled=0, skew_ms=0)
    stores.events.commit(EventWrite(to_us(at), agent_states={machine.row_id: agent}))


@pytest.fixture
def worker(service: Service, stores: Stores, filler: Machine, tmp_path: Path) -> Callable[[str], TrainingWorker]:
    """A worker with a job at hand, whose apprentice is a program given as a text."""
    assert filler.id == FILLER
    (job,) = stores.jobs.collecting()
    stores.jobs.queue(job)

    def make(program: str) -> TrainingWorker:
        service.learning.worker.process_pool = WarmProcessPool(
            lambda: TrainingProcess([sys.executable, "-c", program], tmp_path)
        )
        return service.learning.worker

    return make
