"""Build the scoring feature."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from service.answers.store import AnswerStore
from service.forecasts.version_store import VersionStore
from service.machines.catalogue_store import CatalogueStore
from service.machines.event_store import EventStore
from service.machines.models import MachineReader
from service.machines.store import MachineStore
from service.scoring import api
from service.scoring.scoreboard import Scoreboard
from service.scoring.service import ScoringService
from service.scoring.store import OutcomeStore
from service.scoring.thread import ScoringThread
from service.settings import Settings
from wire.clock import PlantClock

if TYPE_CHECKING:
    from fastapi import APIRouter


@dataclass(frozen=True)
class Scoring:
    """The service and the thread of the feature."""

    service: ScoringService
    thread: ScoringThread

    def router(self, machines: MachineReader, catalogue: CatalogueStore, answers: AnswerStore) -> "APIRouter":
        """Return the routes; ``machines`` and ``answers`` must be limited to the caller's sites."""
        return api.router(Scoreboard(machines, self.service), catalogue, answers)


def build(
    settings: Settings,
    machines: MachineStore,
    events: EventStore,
    versions: VersionStore,
    outcomes: OutcomeStore,
    *,
    clock: PlantClock,
    is_leader: Callable[[], bool],
) -> Scoring:
    """Build the feature."""
    grace = timedelta(minutes=settings.scoring_grace_minutes)
    service = ScoringService(machines, events, versions, outcomes, clock, grace)
    return Scoring(service, ScoringThread(service, is_leader=is_leader))
