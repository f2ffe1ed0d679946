"""What the routers are given: the flows and ports behind the API."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Path, Request

from service.core.health import Health
from service.flows.enrol import Enrolment
from service.flows.explain import ExplanationDesk
from service.flows.forecast import ForecastDesk
from service.flows.load_history import HistoryLoader
from service.flows.newest import NewestForecasts
from service.flows.ports import Catalogue, EventLog, Exams, Jobs, Machines, QuarantineLog, Versions
from service.flows.replay import Replay
from service.flows.scoreboard import Scoreboard
from service.flows.silence import SilenceWatch
from service.flows.versions import VersionDesk
from wire.clock import PlantClock
from wire.identity import ID_PATTERN

Site = Annotated[str, Path(pattern=ID_PATTERN, description="The plant.", examples=["padova"])]
MachineName = Annotated[str, Path(pattern=ID_PATTERN, description="The machine.", examples=["filler-1"])]


@dataclass(frozen=True)
class Parts:
    """Everything a request may need."""

    machines: Machines
    log: EventLog
    catalogue: Catalogue
    desk: ForecastDesk
    newest: NewestForecasts
    explanations: ExplanationDesk
    clock: PlantClock
    health: Callable[[], Health]
    enrolment: Enrolment
    jobs: Jobs
    versions: Versions
    version_desk: VersionDesk
    exams: Exams
    history: HistoryLoader
    scoreboard: Scoreboard
    quarantine: QuarantineLog
    replay: Replay
    silence: SilenceWatch


def who(request: Request) -> str:
    """Say who asks, as the book of changes names them."""
    return f"api:{request.client.host}" if request.client else "api"
