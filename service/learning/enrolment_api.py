"""Routes of enrolment: enrol a machine, load its history, refresh, retire and erase it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from service.auth.audit_store import AuditStore
from service.broker_access import api as credentials
from service.broker_access.edge_toml import source_lines
from service.http.principal import require_site
from service.http.problems import responses
from service.http.request import MachineName, Site, actor, principal
from service.learning.api import job_view
from service.learning.enrolment_service import EnrolmentService
from service.learning.history_file import ImportFile
from service.learning.history_import import HistoryImporter, ImportResult
from service.learning.models import NewMachine
from service.learning.site_filters import SiteFilteredJobs
from service.machines import api as machines
from service.machines.models import MachineReader, zone_named
from wire.enums import HistoryState
from wire.identity import MachineId
from wire.rest.enrolment import Enrol, Enrolment, EraseResult, HistoryLoaded, HistoryUnderWay, Reason
from wire.rest.jobs import JobView
from wire.rest.machines import MachineView
from wire.rest.texts import PRINTABLE
from wire.timestamps import from_us

_CSV = {
    "text/csv": {
        "schema": {"type": "string"},
        "example": "timestamp,alarm,serial\n2026-11-10 08:00:00,139,1\n2026-11-10 08:04:30,26,1\n",
    },
    "application/gzip": {"schema": {"type": "string", "format": "binary"}, "example": "(the same, gzipped)"},
}


IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=200,
        pattern=PRINTABLE,
        description="The same key always gets the same machine and job.",
    ),
]
FileName = Annotated[
    str,
    Query(max_length=200, pattern=PRINTABLE, description="The file's name, for rows that are refused."),
]
Serial = Annotated[
    str | None, Query(max_length=100, pattern=PRINTABLE, description="Take only rows of this serial.")
]


@dataclass(frozen=True)
class EnrolmentServices:
    """What the routes of enrolment use."""

    enrolment: EnrolmentService
    machines: MachineReader
    jobs: SiteFilteredJobs
    history: HistoryImporter
    audit: AuditStore
    on_history_loaded: Callable[[MachineId], None]


def router(services: EnrolmentServices) -> APIRouter:
    """Return the routes of enrolment."""
    enrolment, jobs, history = services.enrolment, services.jobs, services.history
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

    @routes.post(
        "/{site}/{machine}/history",
        responses=responses(404, 409, 410, 413, 422, 429, 503),
        openapi_extra={"requestBody": {"required": True, "content": _CSV}},
    )
    async def load_history(
        site: Site,
        machine: MachineName,
        request: Request,
        name: FileName = "upload",
        serial: Serial = None,
        time_zone: Annotated[
            str | None,
            Query(max_length=64, description="Zone of timestamps that name none; the machine's unless given."),
        ] = None,
    ) -> HistoryLoaded:
        """Load a machine's past: timestamp,alarm,serial as CSV, gzipped or not; twice changes nothing.

        The file must be of one machine: if it has rows of several serials, name the one to take.
        """
        known = await run_in_threadpool(services.machines.get, MachineId(site, machine))
        known.require_active()
        zone = zone_named(time_zone or known.time_zone, pointer="query/time_zone")
        with history.upload(known, actor(request)) as upload:
            async for chunk in request.stream():
                upload.write(chunk)
            log = ImportFile(upload.path, serial or None, zone, name)
            await run_in_threadpool(
                services.audit.write,
                at=enrolment.clock.now(),
                who=principal().name,
                action="load history",
                subject=str(known.id),
                reason=f"{name}, {upload.size:,} bytes",
            )
            result = await run_in_threadpool(history.load, known, log, upload)
        services.on_history_loaded(known.id)
        return _history_loaded(result, log)

    @routes.get("/{site}/{machine}/history", responses=responses(404, 422))
    def history_under_way(site: Site, machine: MachineName) -> HistoryUnderWay:
        """How far the file is that is being loaded right now; what came of it is the answer to its own request."""
        upload = history.underway(services.machines.get(MachineId(site, machine)))
        if upload is None:
            return HistoryUnderWay(state=HistoryState.IDLE, bytes=0, lines_done=0, lines=None)
        return HistoryUnderWay(
            state=HistoryState.RECEIVING if upload.lines is None else HistoryState.STORING,
            bytes=upload.size,
            lines_done=upload.lines_done,
            lines=upload.lines,
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


def _history_loaded(result: ImportResult, log: ImportFile) -> HistoryLoaded:
    last_at = from_us(result.last_us) if result.last_us is not None else None
    zone = str(log.zone)
    return HistoryLoaded(
        stored=result.stored,
        duplicates=result.duplicates,
        flagged=result.too_old + result.from_the_future,
        too_old=result.too_old,
        from_the_future=result.from_the_future,
        quarantined=result.rejected,
        examples=result.examples,
        notes=result.notes,
        rows=result.rows,
        time_zone=zone,
        last_at=last_at,
        edge_toml_source=None
        if last_at is None
        else source_lines(time_zone=zone, serial=log.serial, last_at=last_at),
    )
