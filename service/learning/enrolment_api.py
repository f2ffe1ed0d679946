"""Machines come and go: enrol, load the past, learn again, retire, erase."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from service.auth.audit_request import audit
from service.broker_access import api as credentials
from service.broker_access.edge_toml import source_lines
from service.http.principal import require_site
from service.http.problems import responses
from service.http.request import MachineName, Site, actor
from service.learning import jobs_api as jobs
from service.learning.enrolment import NewMachine
from service.learning.history_import import ImportFile, ImportResult
from service.machines import api as machines
from service.machines.models import zone_named
from wire.enums import HistoryState
from wire.identity import MachineId
from wire.rest.enrolment import Enrol, Enrolment, EraseResult, HistoryLoaded, HistoryUnderWay, Reason
from wire.rest.jobs import JobView
from wire.rest.machines import MachineView
from wire.rest.texts import PRINTABLE
from wire.timestamps import from_us

if TYPE_CHECKING:
    from service.app.api_services import AppServices

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


def router(parts: "AppServices") -> APIRouter:
    """Return the routes of enrolment."""
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
        _insist_on_sites(new)
        machine = MachineId(new.site, new.machine)
        wish = NewMachine(machine, new.name, new.time_zone, new.catalogue)
        enrolled = parts.enrolment.enrol(wish, key=idempotency_key, who=actor(request))
        job = parts.jobs.get(enrolled.job)
        response.status_code = 202 if job.is_open else 200
        response.headers["Location"] = f"/v1/jobs/{job.id}"
        known = parts.machines.get(machine)
        issued, note = parts.credentials.enrolled(known, is_new=enrolled.is_new, who=actor(request))
        response.headers["Cache-Control"] = "no-store"  # it may hold a password
        return Enrolment(
            machine=machines.view(known, parts.machines.agent(known)),
            job=jobs.view(job),
            credentials=None if issued is None else credentials.shown(issued),
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
        name: Annotated[
            str,
            Query(max_length=200, pattern=PRINTABLE, description="The file's name, for rows that are refused."),
        ] = "upload",
        serial: Annotated[
            str | None, Query(max_length=100, pattern=PRINTABLE, description="Take only rows of this serial.")
        ] = None,
        time_zone: Annotated[
            str | None,
            Query(max_length=64, description="Zone of timestamps that name none; the machine's unless given."),
        ] = None,
    ) -> HistoryLoaded:
        """Load a machine's past: timestamp,alarm,serial as CSV, gzipped or not; twice changes nothing.

        The file must be of one machine: if it has rows of several serials, name the one to take.
        """
        known = await run_in_threadpool(parts.machines.get, MachineId(site, machine))
        known.require_active()
        zone, wanted = zone_named(time_zone or known.time_zone, pointer="query/time_zone"), serial or None
        with parts.history.upload(known, actor(request)) as upload:
            async for chunk in request.stream():
                upload.write(chunk)
            log = ImportFile(upload.path, wanted, zone, name)
            told = f"{name}, {upload.size:,} bytes"
            await run_in_threadpool(audit, parts, "load history", str(known.id), told)
            loaded = await run_in_threadpool(parts.history.load, known, log, upload)
        parts.loaded(known.id)
        return _outcome(loaded, log)

    @routes.get("/{site}/{machine}/history", responses=responses(404, 422))
    def history_under_way(site: Site, machine: MachineName) -> HistoryUnderWay:
        """How far the file is that is being loaded right now; what came of it is the answer to its own request."""
        upload = parts.history.underway(parts.machines.get(MachineId(site, machine)))
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
        job = parts.enrolment.refresh(MachineId(site, machine))
        response.headers["Location"] = f"/v1/jobs/{job.id}"
        return jobs.view(job)

    @routes.post("/{site}/{machine}/retire", responses=responses(404, 410, 422, 503))
    def retire_machine(site: Site, machine: MachineName, why: Reason, request: Request) -> MachineView:
        """Let a machine go: no more forecasts, no replay; its share of the memory is free. Its past stays."""
        identity = MachineId(site, machine)
        parts.enrolment.retire(identity, who=actor(request), reason=why.reason)
        known = parts.machines.get(identity)
        return machines.view(known, parts.machines.agent(known))

    @routes.post("/{site}/{machine}/erase", responses=responses(404, 409, 422, 503))
    def erase_machine(site: Site, machine: MachineName, why: Reason, request: Request) -> EraseResult:
        """Remove a machine's events, memory and exams for good, and say which versions had learned from it."""
        versions = parts.enrolment.erase(MachineId(site, machine), who=actor(request), reason=why.reason)
        return EraseResult(learned_by=versions)

    return routes


def _insist_on_sites(new: Enrol) -> None:
    """Refuse a machine of a site that is not the asker's, and of whoever is not of all sites a catalogue."""
    require_site(new.site)
    if new.catalogue is not None:
        require_site(None)


def _outcome(loaded: ImportResult, log: ImportFile) -> HistoryLoaded:
    last_at = from_us(loaded.last_us) if loaded.last_us is not None else None
    zone = str(log.zone)
    return HistoryLoaded(
        stored=loaded.stored,
        duplicates=loaded.duplicates,
        flagged=loaded.too_old + loaded.from_the_future,
        too_old=loaded.too_old,
        from_the_future=loaded.from_the_future,
        quarantined=loaded.rejected,
        examples=loaded.examples,
        notes=loaded.notes,
        rows=loaded.rows,
        time_zone=zone,
        last_at=last_at,
        edge_toml_source=None
        if last_at is None
        else source_lines(time_zone=zone, serial=log.serial, last_at=last_at),
    )
