"""A plant of any size, put straight into an empty database: machines, a stock of past alarms, a model that serves.

Everything but the model's weights is as enrolments and months of service would have left it; those are random,
because what they say is of no matter here. The stock is written by the database itself, since ten million events
would take the service's own path an hour on a busy machine.
"""

import itertools
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import NAMESPACE_URL, UUID, uuid5

import numpy as np
from sqlalchemy import Connection, insert, text

from benchmarks.seeded_store import connect_agents
from forecasting.calibration import Calibration
from forecasting.encoding import Encoding
from forecasting.forecaster import Forecaster
from forecasting.history import HistorySpec
from forecasting.network import Layer, Network
from forecasting.vocabulary import Vocabulary
from forecasting.window import WindowSpec
from service.app.stores import Stores
from service.database.event_row import IN_TIME, EventRow
from service.database.tables import epochs, machines, tasks
from service.machines.catalogue import CatalogueEntry
from service.machines.events import EventWrite
from wire.enums import MachineState
from wire.identity import MachineId
from wire.timestamps import to_us

ALARMS_A_DAY = 46.0  # of an ALPI machine: 444,834 alarms of 20 machines in 482 days
CODES = 154  # of the ALPI machines together; the paper forecasts 15 of them
SITES = 10
_CODES_A_TARGET = 10
_HIDDEN, _OWN_HIDDEN = (512, 256, 128), (64, 32)
_RARE = -2.0  # added to every log-odds: random ones would expect every second alarm, and a notice for each
_AT_ONCE = 500_000  # events a transaction
_DAY_US = 86_400_000_000
# The same few codes stay for a while and then change, as they do on a machine: three of four alarms repeat the
# last one. Times are even but for a little jitter; no two events of a machine share one.
_STOCK = text(
    "INSERT INTO events (epoch_id, seq, machine_id, code, at_us, received_us, flag)"
    " SELECT m.id, n.i, m.id, (n.i / 4 * 7 + m.id * 13) % :codes,"
    " :start + n.i * :step + (m.id * 7919 + n.i * 104729) % :step, :now, 0"
    " FROM machines m CROSS JOIN stock_numbers n WHERE m.id >= :first AND m.id < :last ORDER BY m.id, n.i"
)


@dataclass(frozen=True)
class Plant:
    """How large it is; every machine has raised ``alarms_a_day`` for ``days``."""

    machines: int
    alarms_a_day: float = ALARMS_A_DAY
    days: float = 30.0
    codes: int = CODES

    @property
    def ids(self) -> list[MachineId]:
        """The machines, in the order of their short numbers; sites take turns."""
        return [MachineId(f"plant-{n % SITES}", f"machine-{n}") for n in range(self.machines)]

    @property
    def stock(self) -> int:
        """How many alarms each machine has raised before."""
        return round(self.alarms_a_day * self.days)

    @property
    def events(self) -> int:
        """How many alarms there are in all."""
        return self.machines * self.stock


def epoch_of(machine: MachineId) -> UUID:
    """Return the one spool that a machine has ever had."""
    return uuid5(NAMESPACE_URL, str(machine))


def settle(stores: Stores, plant: Plant, now: datetime) -> None:
    """Fill an empty store with a plant as it is at ``now``."""
    entries = catalogue(plant.codes)
    stores.catalogue.merge(entries)
    learned = to_us(now) - _DAY_US
    with stores.database.write() as connection:
        connection.execute(
            insert(machines),
            [
                {
                    "id": row,
                    "site": machine.site,
                    "machine": machine.machine,
                    "name": machine.machine,
                    "time_zone": "UTC",
                    "registered_us": learned,
                    "state": MachineState.LIVE.value,
                    "learned_us": learned,
                }
                for row, machine in enumerate(plant.ids, start=1)
            ],
        )
        connection.execute(
            insert(epochs),
            [
                {"id": row, "machine_id": row, "epoch": epoch_of(machine)}
                for row, machine in enumerate(plant.ids, start=1)
            ],
        )
    _number_on(stores, plant)
    stock_up(stores, plant, now)
    version = stores.versions.add_and_promote(model(entries), report={}, at=now - timedelta(days=1))
    with stores.database.write() as connection:
        connection.execute(
            insert(tasks),
            [
                {"version_id": version.id, "machine_id": row, "position": row, "offered": 0, "frequency": "{}"}
                for row in range(1, plant.machines + 1)
            ],
        )
    connect_agents(stores, now)


def catalogue(codes: int) -> list[CatalogueEntry]:
    """Return so many codes; one of ten is to be forecast."""
    severities = itertools.cycle(("low", "medium", "high"))
    return [
        CatalogueEntry(code, f"Alarm {code}", next(severities), target=code % _CODES_A_TARGET == 0)
        for code in range(codes)
    ]


def model(entries: list[CatalogueEntry]) -> Forecaster:
    """Return a model of the product's shape, own history included, with random weights."""
    rng = np.random.default_rng(19)
    codes = tuple(entry.code for entry in entries)
    targets = tuple(entry.code for entry in entries if entry.target)
    history, same = HistorySpec(), Calibration.identity(len(targets))
    encoding = Encoding.build(history)
    return Forecaster(
        spec=WindowSpec(),
        vocabulary=Vocabulary(codes, targets),
        network=Network(
            _layers((len(codes), *_HIDDEN, len(targets)), rng),
            _layers((encoding.width, *_OWN_HIDDEN, 3), rng),
            encoding,
            np.ones(2, dtype=np.float32),
        ),
        calibration=Calibration(
            np.ones(len(targets), dtype=np.float32), np.full(len(targets), _RARE, dtype=np.float32), same, same
        ),
        thresholds=np.full(len(targets), 0.5, dtype=np.float32),
        history=history,
    )


def _layers(sizes: tuple[int, ...], rng: np.random.Generator) -> tuple[Layer, ...]:
    return tuple(
        Layer(
            rng.normal(0, 1 / np.sqrt(inputs), (outputs, inputs)).astype(np.float32),
            np.zeros(outputs, dtype=np.float32),
        )
        for inputs, outputs in itertools.pairwise(sizes)
    )


def stock_up(stores: Stores, plant: Plant, now: datetime, *, first: int = 1) -> None:
    """Write the alarms that the machines from a short number on have raised before ``now``."""
    if not plant.stock:
        return
    span = round(plant.days * _DAY_US)
    if not stores.database.is_sqlite:
        _make_room(stores, plant, now)
    values = {"codes": plant.codes, "start": to_us(now) - span, "step": span // (plant.stock + 1)}
    at_once = max(1, _AT_ONCE // plant.stock)
    for row in range(first, plant.machines + 1, at_once):
        with stores.database.write() as connection:
            _count_to(connection, plant.stock)
            chosen = {"first": row, "last": row + at_once, "now": to_us(now)}
            connection.execute(_STOCK, values | chosen)
    if not stores.database.is_sqlite:
        with stores.database.write() as connection:
            connection.execute(text("ANALYZE events"))


def _count_to(connection: Connection, most: int) -> None:
    connection.execute(text("DROP TABLE IF EXISTS stock_numbers"))
    connection.execute(text("CREATE TEMPORARY TABLE stock_numbers (i bigint)"))
    connection.execute(
        text(
            "INSERT INTO stock_numbers WITH RECURSIVE n(i) AS"
            " (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :most) SELECT i FROM n"
        ),
        {"most": most},
    )


def _make_room(stores: Stores, plant: Plant, now: datetime) -> None:
    """Let the service's own commit make the partitions that the stock needs: one event a day calls for them."""
    herald, days = epoch_of(MachineId("plant-0", "herald")), range(int(plant.days) + 1)
    rows = [EventRow(1, herald, day + 1, 0, to_us(now) - day * _DAY_US, IN_TIME) for day in days]
    stores.events.commit(EventWrite(to_us(now), events=rows))


def _number_on(stores: Stores, plant: Plant) -> None:
    """Let PostgreSQL number on from what was given; SQLite does so by itself."""
    if stores.database.is_sqlite:
        return
    with stores.database.write() as connection:
        for table in ("machines", "epochs"):
            connection.execute(
                text(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), :last)"),
                {"last": plant.machines},
            )
