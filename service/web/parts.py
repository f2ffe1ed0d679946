"""What the routers are given: the flows and ports behind the API."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Path, Request

from service.core.health import Health
from service.core.principal import Principal, asker
from service.errors import InputRejected, NotSignedIn
from service.flows.credentials import CredentialDesk
from service.flows.enrol import Enrolment
from service.flows.explain import ExplanationDesk
from service.flows.export import AlarmExport
from service.flows.figures import FiguresDesk
from service.flows.forecast import ForecastDesk
from service.flows.hush import HushDesk
from service.flows.load_history import HistoryLoader
from service.flows.newest import NewestForecasts
from service.flows.notice_board import NoticeBoard
from service.flows.people import PeopleDesk
from service.flows.replay import Replay
from service.flows.scoped import (
    ScopedExams,
    ScopedFeed,
    ScopedFleet,
    ScopedJobs,
    ScopedMachines,
    ScopedQuarantine,
    ScopedSilence,
    ScopedVersions,
)
from service.flows.scoreboard import Scoreboard
from service.flows.sign_in import SignInDesk
from service.flows.timeline import TimelineDesk
from service.flows.versions import VersionDesk
from service.flows.webhooks import WebhookDesk
from service.store.audit import AuditStore
from service.store.catalogue import CatalogueStore
from service.store.events import EventStore
from wire.clock import PlantClock
from wire.identity import ID_PATTERN, MachineId
from wire.rest.health import Condition
from wire.words import PrincipalKind

Site = Annotated[str, Path(pattern=ID_PATTERN, description="The plant.", examples=["padova"])]
MachineName = Annotated[str, Path(pattern=ID_PATTERN, description="The machine.", examples=["filler-1"])]


@dataclass(frozen=True)
class Parts:
    """Everything a request may need; what is of sites comes as a scoped view, and mypy takes nothing else."""

    machines: ScopedMachines
    log: EventStore
    catalogue: CatalogueStore
    desk: ForecastDesk
    newest: NewestForecasts
    explanations: ExplanationDesk
    clock: PlantClock
    health: Callable[[], Health]  # of what the asker may see, as is `condition`
    enrolment: Enrolment
    credentials: CredentialDesk
    jobs: ScopedJobs
    versions: ScopedVersions
    version_desk: VersionDesk
    exams: ScopedExams
    history: HistoryLoader
    loaded: Callable[[MachineId], None]  # told of a machine whose past was loaded
    scoreboard: Scoreboard
    quarantine: ScopedQuarantine
    replay: Replay
    silence: ScopedSilence
    fleet: ScopedFleet
    feed: ScopedFeed
    condition: Callable[[], Condition]
    figures: FiguresDesk
    timelines: TimelineDesk
    export: AlarmExport
    hush: HushDesk
    notices: NoticeBoard
    webhooks: WebhookDesk
    sign_in: SignInDesk
    people: PeopleDesk
    audit: AuditStore
    metrics: Callable[[], bytes]


def principal() -> Principal:
    """Return who asks; the guard has let nobody in whom it does not know."""
    who = asker()
    if who is None:
        raise NotSignedIn("Who are you? Sign in first: POST /v1/session.")
    return who


def who(_request: Request) -> str:
    """Say who asks, as the book of changes names them."""
    return principal().name


def author(by: str | None) -> str:
    """Return who is the author of what is asked: the signed-in user; a program may name the person it asks for."""
    asks = principal()
    if by is None or by == asks.name:
        return asks.name
    if asks.kind is PrincipalKind.SESSION:
        raise InputRejected(f"You are signed in as {asks.name}, who is the author. Leave `by` out.")
    return f"{by} ({asks.name})"


def write_down(parts: Parts, action: str, subject: str, reason: str | None = None) -> None:
    """Write a deed down before it is done, where it is not one transaction that could tell of itself."""
    parts.audit.write(at=parts.clock.now(), who=principal().name, action=action, subject=subject, reason=reason)


def origin(request: Request) -> str | None:
    """Return the address that a request comes from."""
    return request.client.host if request.client else None
