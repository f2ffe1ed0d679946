"""A store as the service finds it in a plant: machines, weeks of simulated events, a model that serves.

The model's weights are random: what they say is of no matter here, how long it takes is the same.
"""

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import numpy as np
from numpy.random import Generator

from edge_agent.simulator.catalogue import catalogue_csv
from edge_agent.simulator.log_file import write_log
from forecasting.calibration import Calibration
from forecasting.encoding import Encoding
from forecasting.forecaster import Forecaster
from forecasting.history import HistorySpec
from forecasting.network import Layer, Network
from forecasting.vocabulary import Vocabulary
from forecasting.window import WindowSpec
from service.app.configuration import load_settings
from service.app.stores import Stores, open_stores
from service.ingest.service import TimePolicy
from service.learning.history_file import ImportFile
from service.learning.history_import import load_history
from service.learning.models import NewMachine
from service.machines.catalogue import CatalogueEntry, parse_catalogue
from service.machines.events import EventWrite
from service.machines.models import Agent
from wire.identity import MachineId
from wire.timestamps import to_us

CODES, TARGETS = 154, 15  # of the simulated machines' catalogue
_SEED = 19
_HIDDEN, _OWN_HIDDEN = (512, 256, 128), (64, 32)


def machine_ids(count: int) -> list[MachineId]:
    """Return the machines of a prepared store."""
    return [MachineId("plant", f"machine-{number}") for number in range(count)]


def prepare(data_dir: Path, *, machines: int, days: float = 0, history: bool = False) -> None:
    """Fill an empty data directory: ``machines`` registered, ``days`` of events each, a model promoted.

    With ``history`` the model reads each code's own past, as one does that the service has learned.
    """
    now = datetime.now(UTC)
    entries = parse_catalogue(catalogue_csv())
    with open_stores(load_settings(data_dir=data_dir)) as stores:
        stores.catalogue.merge(entries)
        for machine in machine_ids(machines):
            wish = NewMachine(machine, machine.machine, "UTC")
            stores.enrolments.enrol(wish, key=None, who="benchmark", at=now, plant_at=now)
        if days:
            _load(stores, machines, days, now)
        stores.versions.add_and_promote(
            _random_model(entries, history=history), report={}, at=now - timedelta(days=1)
        )
        connect_agents(stores, now)


def connect_agents(stores: Stores, now: datetime) -> None:
    """Mark every agent as online: a machine that never connected is not forecast."""
    agent = Agent(online=True, last_seen_at=now, version="1", epoch=uuid4(), spooled=0, skew_ms=0)
    states = {machine.row_id: agent for machine in stores.machines.all()}
    stores.events.commit(EventWrite(to_us(now), agent_states=states))


def _load(stores: Stores, machines: int, days: float, now: datetime) -> None:
    with TemporaryDirectory() as folder:
        log = Path(folder) / "history.csv"
        write_log(log, machines=machines, days=days, end=now, seed=_SEED)
        for index, machine in enumerate(machine_ids(machines)):
            load_history(
                stores.machines.get(machine),
                ImportFile(log, serial=str(index)),
                recorder=stores.events,
                now=now,
                policy=TimePolicy(),
            )


def _random_model(entries: list[CatalogueEntry], *, history: bool) -> Forecaster:
    rng = np.random.default_rng(_SEED)
    codes = tuple(entry.code for entry in entries)
    targets = tuple(entry.code for entry in entries if entry.target)
    spec = HistorySpec() if history else None
    own: tuple[Layer, ...] = ()
    encoding, link, curves = None, None, Calibration.identity(len(targets))
    if spec is not None:
        encoding = Encoding.build(spec)
        own = _layers((encoding.width, *_OWN_HIDDEN, 3), rng)
        link, curves = np.ones(2, dtype=np.float32), replace(curves, near=curves, far=curves)
    return Forecaster(
        spec=WindowSpec(),
        vocabulary=Vocabulary(codes, targets),
        network=Network(_layers((len(codes), *_HIDDEN, len(targets)), rng), own, encoding, link),
        calibration=curves,
        thresholds=np.full(len(targets), 0.5, dtype=np.float32),
        history=spec,
    )


def _layers(sizes: tuple[int, ...], rng: Generator) -> tuple[Layer, ...]:
    return tuple(
        Layer(
            rng.normal(0, 1 / np.sqrt(inputs), (outputs, inputs)).astype(np.float32),
            np.zeros(outputs, dtype=np.float32),
        )
        for inputs, outputs in itertools.pairwise(sizes)
    )
