"""A machine with stored forecasts and a clock that a test sets, on whichever database the test runs on."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import numpy as np

from service.database.engine import Database
from service.database.event_row import IN_TIME, EventRow
from service.database.weight_files import WeightsFolder
from service.forecasts.store import ForecastStore
from service.forecasts.version import StoredForecast, Version
from service.forecasts.version_store import VersionStore
from service.learning.enrolment_store import EnrolmentStore
from service.machines.event_store import EventStore
from service.machines.events import EventWrite, GapRow, WriteResult
from service.machines.models import Agent, Machine
from service.machines.store import MachineStore
from service.scoring.service import ScoringService
from service.scoring.store import OutcomeStore
from tests.service.conftest import enrolled, small_model
from wire.clock import PlantClock
from wire.identity import MachineId
from wire.timestamps import to_us

AT = datetime(2026, 11, 16, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
HORIZON, GRACE = timedelta(minutes=480), timedelta(minutes=5)
CLOSED = AT + HORIZON  # when the horizon of a forecast made at AT closes


@dataclass
class Bench:
    """Stores, a scoring flow and its time; the targets are 139 and 26, each announced from 0.5 on."""

    database: Database
    folder: Path
    now: datetime = AT
    machines: MachineStore = field(init=False)
    events: EventStore = field(init=False)
    forecasts: ForecastStore = field(init=False)
    outcomes: OutcomeStore = field(init=False)
    versions: VersionStore = field(init=False)
    version: Version = field(init=False)
    scoring: ScoringService = field(init=False)

    def __post_init__(self) -> None:
        self.machines, self.events = MachineStore(self.database), EventStore(self.database)
        self.forecasts, self.outcomes = ForecastStore(self.database), OutcomeStore(self.database)
        self.versions = VersionStore(self.database, WeightsFolder(self.folder))
        self.version = self.versions.add_and_promote(small_model(), report={}, at=AT - 10 * HOUR)
        self.scoring = self.new_scoring()

    def new_scoring(self) -> ScoringService:
        """Return a flow that remembers nothing, as after a restart."""
        clock = PlantClock(wall=self._seconds)
        return ScoringService(self.machines, self.events, self.versions, self.outcomes, clock, GRACE)

    def _seconds(self) -> float:
        return self.now.timestamp()

    def machine(self, name: str = "filler-1") -> Machine:
        identity = MachineId("padova", name)
        return enrolled(EnrolmentStore(self.database), identity)

    def said(
        self,
        machine: Machine,
        at: datetime,
        *probabilities: float,
        version: Version | None = None,
        status: str = "ok",
        near_and_far: tuple[tuple[float, float], tuple[float, float]] | None = None,
    ) -> None:
        """Store a forecast as if it had been served."""
        row = np.array(probabilities or (0.9, 0.1), dtype=np.float32)
        others = None if near_and_far is None else np.array(near_and_far, dtype=np.float32)
        number = (version or self.version).id
        self.forecasts.add([StoredForecast(machine.row_id, at, number, status, 1, 1.0, row, others)])

    def raised(
        self, machine: Machine, *alarms: tuple[datetime, int], flag: int = IN_TIME, epoch: UUID | None = None
    ) -> WriteResult:
        """Commit alarms as one message would."""
        used = epoch or uuid4()
        rows = [
            EventRow(machine.row_id, used, seq, code, to_us(at), flag)
            for seq, (at, code) in enumerate(alarms, start=1)
        ]
        return self.events.commit(EventWrite(to_us(self.now), events=rows))

    def lost(self, machine: Machine, first: datetime, last: datetime) -> None:
        """Commit a record of events that the agent had to drop."""
        gap = GapRow(machine.row_id, uuid4(), 1, 9, to_us(first), to_us(last), "spool_full")
        self.events.commit(EventWrite(to_us(self.now), gaps=[gap]))

    def heard(self, machine: Machine, at: datetime, *, spooled: int = 0) -> None:
        """Let the agent tell how it is."""
        agent = Agent(online=True, last_seen_at=at, version="1", epoch=uuid4(), spooled=spooled, skew_ms=0)
        self.events.commit(EventWrite(to_us(at), agent_states={machine.row_id: agent}))

    def score(self, now: datetime | None = None) -> int:
        """Score all that is due, every machine heard by then unless the test says otherwise."""
        self.now = now or self.now
        return sum(self.scoring.score_all_due())

    def found(self, machine: Machine) -> dict[datetime, tuple[list[bool], list[bool], list[bool]]]:
        """Return what came, what persistence said and what was announced, for each scored forecast."""
        page = self.outcomes.page(machine, AT - 9999 * HOUR, AT + 9999 * HOUR, limit=10_000)
        return {
            AT + timedelta(microseconds=one.outcome.as_of_us - to_us(AT)): (
                one.outcome.occurred.tolist(),
                one.outcome.persisted.tolist(),
                one.outcome.predicted.tolist(),
            )
            for one in page
        }

    def revision_count(self, machine: Machine) -> list[int]:
        """Return how often each scored forecast was revised, oldest first."""
        page = self.outcomes.page(machine, AT - 9999 * HOUR, AT + 9999 * HOUR, limit=10_000)
        return [one.outcome.revision_count for one in reversed(page)]
