"""Routes of enrolment: enrol a machine, refresh, retire and erase it."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response

from service.broker_access import api as credentials
from service.http.principal import require_site
from service.http.problems import responses
from service.http.request import MachineName, Site, actor
from service.learning.api import job_view
from service.learning.enrolment_service import EnrolmentService
from service.learning.models import NewMachine
from service.learning.site_filters import SiteFilteredJobs
from service.machines import api as machines
from service.machines.models import MachineReader
from wire.identity import MachineId
from wire.rest.enrolment import Enrol, Enrolment, EraseResult, Reason
from wire.rest.jobs import JobView
from wire.rest.machines import MachineView
from wire.rest.texts import PRINTABLE

IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=200,
        pattern=PRINTABLE,
        description="The same key always gets the same machine and job.",
    ),
]


@dataclass(frozen=True)
class EnrolmentServices:
    """What the routes of enrolment use."""

    enrolment: EnrolmentService
    machines: MachineReader
    jobs: SiteFilteredJobs


def router(services: EnrolmentServices) -> APIRouter:
    """Return the routes of enrolment."""
    enrolment, jobs = services.enrolment, services.jobs
    routes = APIRouter(prefix="/v1/machines", tags=["enrolment"])

    @routes.post(
        "",
        status_code=202,
        responses={
            200: {"model": Enrolment, "description": "Enrolled before, and nothing to do."},
            **responses(409, 422, 503),
        },
    )
    def enrol_machine(
        new: Enrol,
        request: Request,
        response: Response,
        idempotency_key: IdempotencyKey = None,
    ) -> Enrolment:
        """Enrol a machine: its alarms are taken from now on, and it is learned once there is enough of them."""
        _require_sites(new)
        machine = MachineId(new.site, new.machine)
        new_machine = NewMachine(machine, new.name, new.time_zone, new.catalogue)
        enrolled = enrolment.enrol(new_machine, key=idempotency_key, who=actor(request))
        job = jobs.get(enrolled.job)
        response.status_code = 202 if job.is_open else 200
        response.headers["Location"] = f"/v1/jobs/{job.id}"
        known = services.machines.get(machine)
        issued, note = enrolment.credentials.enrolled(known, is_new=enrolled.is_new, who=actor(request))
        response.headers["Cache-Control"] = "no-store"  # it may hold a password
        return Enrolment(
            machine=machines.view(known, services.machines.agent(known)),
            job=job_view(job),
            credentials=None if issued is None else credentials.issued_view(issued),
            credentials_note=note,
        )

    @routes.post("/{site}/{machine}/refresh", status_code=202, responses=responses(404, 409, 410, 422, 503))
    def refresh_machine(site: Site, machine: MachineName, response: Response) -> JobView:
        """Learn a machine again from its recent windows; one that is being learned already keeps its job."""
        job = enrolment.refresh(MachineId(site, machine))
        response.headers["Location"] = f"/v1/jobs/{job.id}"
        return job_view(job)

    @routes.post("/{site}/{machine}/retire", responses=responses(404, 410, 422, 503))
    def retire_machine(site: Site, machine: MachineName, why: Reason, request: Request) -> MachineView:
        """Let a machine go: no more forecasts, no replay; its share of the memory is free. Its past stays."""
        identity = MachineId(site, machine)
        enrolment.retire(identity, who=actor(request), reason=why.reason)
        known = services.machines.get(identity)
        return machines.view(known, services.machines.agent(known))

    @routes.post("/{site}/{machine}/erase", responses=responses(404, 409, 422, 503))
    def erase_machine(site: Site, machine: MachineName, why: Reason, request: Request) -> EraseResult:
        """Remove a machine's events, memory and exams for good, and say which versions had learned from it."""
        versions = enrolment.erase(MachineId(site, machine), who=actor(request), reason=why.reason)
        return EraseResult(learned_by=versions)

    return routes


def _require_sites(new: Enrol) -> None:
    """Reject a machine of another site, and a catalogue from a user who is not of all sites."""
    require_site(new.site)
    if new.catalogue is not None:
        require_site(None)
