"""What the routers are given: the flows and ports behind the API."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Path, Request

from service.core.health import Health
from service.flows.credentials import CredentialDesk
from service.flows.enrol import Enrolment
from service.flows.explain import ExplanationDesk
from service.flows.export import AlarmExport
from service.flows.feed import Feed
from service.flows.figures import FiguresDesk
from service.flows.fleet import FleetBoard
from service.flows.forecast import ForecastDesk
from service.flows.hush import HushDesk
from service.flows.load_history import HistoryLoader
from service.flows.newest import NewestForecasts
from service.flows.notice_board import NoticeBoard
from service.flows.ports import Catalogue, EventLog, Exams, Jobs, Machines, QuarantineLog, Versions
from service.flows.replay import Replay
from service.flows.scoreboard import Scoreboard
from service.flows.silence import SilenceWatch
from service.flows.timeline import TimelineDesk
from service.flows.versions import VersionDesk
from service.flows.webhooks import WebhookDesk
from wire.clock import PlantClock
from wire.identity import ID_PATTERN
from wire.rest.health import Condition

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
    credentials: CredentialDesk
    jobs: Jobs
    versions: Versions
    version_desk: VersionDesk
    exams: Exams
    history: HistoryLoader
    scoreboard: Scoreboard
    quarantine: QuarantineLog
    replay: Replay
    silence: SilenceWatch
    fleet: FleetBoard
    feed: Feed
    condition: Callable[[], Condition]
    figures: FiguresDesk
    timelines: TimelineDesk
    export: AlarmExport
    hush: HushDesk
    notices: NoticeBoard
    webhooks: WebhookDesk


def who(request: Request) -> str:
    """Say who asks, as the book of changes names them."""
    return f"api:{request.client.host}" if request.client else "api"
