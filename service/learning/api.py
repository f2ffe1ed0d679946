"""Routes of learning: jobs, model versions and the memory."""

import json
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, ExitStack
from typing import Annotated, Any, Protocol

from fastapi import APIRouter, Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from service.forecasts.version import Version
from service.http.problems import responses
from service.http.request import actor
from service.http.server_sent_events import EventStream, Wake
from service.learning.job_watch import Follower
from service.learning.models import Job
from service.learning.site_filters import SiteFilteredHoldouts, SiteFilteredJobs, SiteFilteredVersions
from service.learning.versions import VersionService
from service.machines.catalogue import CatalogueEntry, unknown_code
from service.machines.catalogue_store import CatalogueStore
from wire.enums import VersionStatus
from wire.rest.jobs import EXAMPLE_JOB, JobList, JobView, ProgressView
from wire.rest.memory import CodeMemory, MachineMemory, MemoryView, VersionMemory
from wire.rest.models import ExamFigures, ModelDetail, ModelList, ModelView, Promotion, Rollback

_STREAM = {
    "text/event-stream": {
        "schema": {"type": "string"},
        "example": f"event: job\ndata: {json.dumps(EXAMPLE_JOB)}\n\n: still there\n\n",
    }
}

JobNumber = Annotated[int, Path(ge=1, le=2**31 - 1, description="The job.", examples=[1])]
VERSION_PATTERN = r"^v[1-9][0-9]{0,8}$"
VersionName = Annotated[str, Path(pattern=VERSION_PATTERN, description="The version.", examples=["v1"])]


class Streams(Protocol):
    """Server-sent event streams: limits their number and tells when they close."""

    @property
    def closed(self) -> bool: ...

    @property
    def ping(self) -> float: ...

    def place(self) -> AbstractContextManager[None]: ...


def job_view(job: Job) -> JobView:
    """Return a job as the API shows it."""
    return JobView(
        id=job.id,
        site=job.machine.site,
        machine=job.machine.machine,
        kind=job.kind,
        state=job.state,
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        finished_plant_at=job.finished_plant_at,
        attempt=job.attempt,
        progress=ProgressView(**job.progress.as_json()),
        message=str(job.message) if job.message else None,
        model_version=f"v{job.version}" if job.version is not None else None,
    )


def jobs_router(jobs: SiteFilteredJobs, streams: Streams) -> APIRouter:
    """Return the routes of jobs."""
    routes = APIRouter(prefix="/v1/jobs", tags=["learning"])

    @routes.get("", responses=responses(422))
    def list_jobs(
        limit: Annotated[int, Query(ge=1, le=1000, description="How many at the most.")] = 100,
    ) -> JobList:
        """The latest jobs."""
        return JobList(jobs=[job_view(job) for job in jobs.newest(limit=limit)])

    @routes.get("/{job}", responses=responses(404, 422))
    def get_job(job: JobNumber) -> JobView:
        """One job: its stage, epoch and loss, and in the end its verdict."""
        return job_view(jobs.get(job))

    @routes.get(
        "/{job}/events",
        response_class=StreamingResponse,
        responses={200: {"content": _STREAM, "description": "Events."}, **responses(404, 422, 429, 503)},
    )
    async def follow_job(job: JobNumber) -> StreamingResponse:
        """The job as server-sent events, one each time it changes, until it has ended or the service stops."""
        return _JobStream(jobs, streams, await run_in_threadpool(jobs.get, job))

    return routes


class _JobStream(EventStream):
    """Counts as one stream and follows its job until the stream ends."""

    def __init__(self, jobs: SiteFilteredJobs, streams: Streams, job: Job) -> None:
        wake = Wake()
        self._resources = ExitStack()
        self._resources.enter_context(streams.place())
        follower = jobs.follow(job.id, wake)
        self._resources.callback(follower.close)
        super().__init__(_changes(jobs, streams, job, follower, wake), self._resources.close)


async def _changes(
    jobs: SiteFilteredJobs, streams: Streams, job: Job, follower: Follower, wake: Wake
) -> AsyncIterator[str]:
    sent: dict[str, Any] | None = None
    while True:
        current = job_view(jobs.shown(job)).model_dump(mode="json")
        if current != sent:
            sent = current
            yield f"event: job\ndata: {json.dumps(current)}\n\n"
        if not job.is_open or streams.closed:
            return
        if not await wake.within(streams.ping):
            yield ": still there\n\n"
        job = follower.latest or job


def models_router(
    versions: SiteFilteredVersions, holdouts: SiteFilteredHoldouts, service: VersionService
) -> APIRouter:
    """Return the routes of models."""
    routes = APIRouter(prefix="/v1/models", tags=["learning"])

    @routes.get("")
    def list_models() -> ModelList:
        """Every version, newest first."""
        champion = versions.champion()
        return ModelList(models=[_model_view(version, champion) for version in versions.all()])

    # Before the route of one version, whose name this is not.
    @routes.post("/rollback", responses=responses(409, 422, 503))
    def roll_back_model(body: Rollback, request: Request) -> ModelView:
        """Let the version serve again that the champion was learned from."""
        version = service.roll_back(
            who=actor(request), reason=body.reason, serving=_expected_champion(body.serving)
        )
        return _model_view(version, versions.champion())

    @routes.get("/{version}", responses=responses(404, 422))
    def get_model(version: VersionName) -> ModelDetail:
        """One version in full."""
        selected = versions.get(_version_number(version))
        matrix = holdouts.matrix()
        line = _lineage(selected, versions)
        return ModelDetail(
            **_model_view(selected, versions.champion()).model_dump(),
            targets=list(selected.targets),
            report=selected.report,
            exams=_scores(matrix.get(selected.id, {})),
            codes=holdouts.by_code(selected.id),
            matrix={ancestor.name: _scores(matrix.get(ancestor.id, {})) for ancestor in line},
        )

    @routes.post("/{version}/promote", responses=responses(404, 409, 422, 503))
    def promote_model(version: VersionName, body: Promotion, request: Request) -> ModelView:
        """Let a version serve; one that the gate rejected only by force."""
        promoted = service.promote(
            _version_number(version),
            who=actor(request),
            reason=body.reason,
            force=body.force,
            serving=_expected_champion(body.serving),
        )
        return _model_view(promoted, versions.champion())

    return routes


def _model_view(version: Version, champion: Version | None) -> ModelView:
    status = VersionStatus.REJECTED if version.promoted_at is None else VersionStatus.PROMOTED
    if champion is not None and champion.id == version.id:
        status = VersionStatus.CHAMPION
    return ModelView(
        version=version.name,
        status=status,
        parent=f"v{version.parent}" if version.parent is not None else None,
        created_at=version.created_at,
        promoted_at=version.promoted_at,
        machines=list(version.learned),
        summary=version.report.get("summary", ""),
        weights=version.weights,
        pruned=version.pruned,
    )


def _lineage(version: Version, versions: SiteFilteredVersions) -> list[Version]:
    """Return a version's ancestors and itself, oldest first."""
    by_id = {each.id: each for each in versions.all()}
    line = [version]
    while (parent := line[-1].parent) is not None and parent in by_id:
        line.append(by_id[parent])
    return line[::-1]


def _scores(by_machine: dict[str, dict[str, Any]]) -> dict[str, ExamFigures]:
    return {machine: ExamFigures(**scores) for machine, scores in by_machine.items()}


def _expected_champion(serving: str | None) -> int | None:
    return None if serving is None else _version_number(serving)


def _version_number(version: str) -> int:
    return int(version.removeprefix("v"))


def memory_router(versions: SiteFilteredVersions, catalogue: CatalogueStore) -> APIRouter:
    """Return the routes of the memory."""
    routes = APIRouter(prefix="/v1/memory", tags=["learning"])

    @routes.get("", responses=responses(404, 422))
    def get_memory(
        version: Annotated[
            str | None, Query(pattern=VERSION_PATTERN, description="Of this version; of the one that serves.")
        ] = None,
    ) -> MemoryView:
        """What a version remembers: by machine, by label, and how far its labels are from all alike."""
        selected = versions.champion() if version is None else versions.get(_version_number(version))
        if selected is None:
            return MemoryView(
                version=None, kl_to_uniform=None, kl_offered=None, machines=[], codes=[], versions=[]
            )
        memory = _memory_report(selected)
        return MemoryView(
            version=selected.name,
            kl_to_uniform=memory.get("kl_to_uniform"),
            kl_offered=memory.get("kl_offered"),
            machines=[MachineMemory(machine=name, **counts) for name, counts in _machines(memory).items()],
            codes=_codes(memory, catalogue.entries()),
            versions=[_version_memory(ancestor) for ancestor in _lineage(selected, versions)],
        )

    return routes


def _memory_report(version: Version) -> dict[str, Any]:
    """Return the memory section of a version's report; empty if the version was imported."""
    memory: dict[str, Any] = version.report.get("memory", {})
    return memory


def _machines(memory: dict[str, Any]) -> dict[str, dict[str, int]]:
    machines: dict[str, dict[str, int]] = memory.get("by_machine", {})
    return machines


def _codes(memory: dict[str, Any], entries: dict[int, CatalogueEntry]) -> list[CodeMemory]:
    offered = memory.get("offered_by_code", {})
    codes = [
        CodeMemory(
            code=int(code),
            text=(entries.get(int(code)) or unknown_code(int(code))).text,
            windows=count,
            offered=offered.get(code),
        )
        for code, count in memory.get("by_code", {}).items()
    ]
    return sorted(codes, key=lambda memory: (-memory.windows, memory.code))


def _version_memory(version: Version) -> VersionMemory:
    memory = _memory_report(version)
    machines = _machines(memory)
    return VersionMemory(
        version=version.name,
        created_at=version.created_at,
        machines=len(machines),
        windows=sum(sum(share.values()) for share in machines.values()),
        kl_to_uniform=memory.get("kl_to_uniform"),
        kl_offered=memory.get("kl_offered"),
    )
