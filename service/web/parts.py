"""What the routers are given: the flows and ports behind the API."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Path, Request

from service.core.health import Health
from service.core.principal import Principal, current_user
from service.errors import InputRejected, NotSignedIn
from service.flows.credentials import CredentialService
from service.flows.enrol import EnrolmentService
from service.flows.explain import ExplanationService
from service.flows.export import AlarmExport
from service.flows.figures import AlarmMetricsService
from service.flows.forecast import ForecastService
from service.flows.hush import SuppressionService
from service.flows.load_history import HistoryImporter
from service.flows.newest import ForecastCache
from service.flows.notice_board import NotificationList
from service.flows.people import UserService
from service.flows.replay import QuarantineReplay
from service.flows.scoped import (
    SiteFilteredBus,
    SiteFilteredFleet,
    SiteFilteredHoldouts,
    SiteFilteredJobs,
    SiteFilteredMachines,
    SiteFilteredQuarantine,
    SiteFilteredSilence,
    SiteFilteredVersions,
)
from service.flows.scoreboard import Scoreboard
from service.flows.sign_in import LoginService
from service.flows.timeline import TimelineService
from service.flows.versions import VersionService
from service.flows.webhooks import WebhookService
from service.store.audit import AuditStore
from service.store.catalogue import CatalogueStore
from service.store.events import EventStore
from wire.clock import PlantClock
from wire.identity import ID_PATTERN, MachineId
from wire.rest.health import SystemStatus
from wire.words import PrincipalKind

Site = Annotated[str, Path(pattern=ID_PATTERN, description="The plant.", examples=["padova"])]
MachineName = Annotated[str, Path(pattern=ID_PATTERN, description="The machine.", examples=["filler-1"])]


@dataclass(frozen=True)
class AppServices:
    """Everything a request may need; what is of sites comes as a scoped view, and mypy takes nothing else."""

    machines: SiteFilteredMachines
    log: EventStore
    catalogue: CatalogueStore
    desk: ForecastService
    newest: ForecastCache
    explanations: ExplanationService
    clock: PlantClock
    health: Callable[[], Health]  # of what the asker may see, as is `condition`
    enrolment: EnrolmentService
    credentials: CredentialService
    jobs: SiteFilteredJobs
    versions: SiteFilteredVersions
    version_desk: VersionService
    exams: SiteFilteredHoldouts
    history: HistoryImporter
    loaded: Callable[[MachineId], None]  # told of a machine whose past was loaded
    scoreboard: Scoreboard
    quarantine: SiteFilteredQuarantine
    replay: QuarantineReplay
    silence: SiteFilteredSilence
    fleet: SiteFilteredFleet
    feed: SiteFilteredBus
    condition: Callable[[], SystemStatus]
    figures: AlarmMetricsService
    timelines: TimelineService
    export: AlarmExport
    hush: SuppressionService
    notices: NotificationList
    webhooks: WebhookService
    sign_in: LoginService
    people: UserService
    audit: AuditStore
    metrics: Callable[[], bytes]


def principal() -> Principal:
    """Return who asks; the guard has let nobody in whom it does not know."""
    who = current_user()
    if who is None:
        raise NotSignedIn("Who are you? Sign in first: POST /v1/session.")
    return who


def actor(_request: Request) -> str:
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


def audit(parts: AppServices, action: str, subject: str, reason: str | None = None) -> None:
    """Write a deed down before it is done, where it is not one transaction that could tell of itself."""
    parts.audit.write(at=parts.clock.now(), who=principal().name, action=action, subject=subject, reason=reason)


def client_ip(request: Request) -> str | None:
    """Return the address that a request comes from."""
    return request.client.host if request.client else None
