"""Jobs: what is being learned, how far it is, and what became of it; once, in a list, or as it happens."""

import json
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from service.http.problems import responses
from service.http.server_sent_events import EventStream, Wake
from service.learning.job import Job
from service.learning.job_watch import Follower
from wire.rest.jobs import EXAMPLE_JOB, JobList, JobView, ProgressView

if TYPE_CHECKING:
    from service.app.api_services import AppServices

_STREAM = {
    "text/event-stream": {
        "schema": {"type": "string"},
        "example": f"event: job\ndata: {json.dumps(EXAMPLE_JOB)}\n\n: still there\n\n",
    }
}

JobNumber = Annotated[int, Path(ge=1, le=2**31 - 1, description="The job.", examples=[1])]


def view(job: Job) -> JobView:
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


def router(parts: "AppServices") -> APIRouter:
    """Return the routes of jobs."""
    routes = APIRouter(prefix="/v1/jobs", tags=["learning"])

    @routes.get("", responses=responses(422))
    def list_jobs(
        limit: Annotated[int, Query(ge=1, le=1000, description="How many at the most.")] = 100,
    ) -> JobList:
        """The latest jobs."""
        return JobList(jobs=[view(job) for job in parts.jobs.newest(limit=limit)])

    @routes.get("/{job}", responses=responses(404, 422))
    def get_job(job: JobNumber) -> JobView:
        """One job: its stage, epoch and loss, and in the end its verdict."""
        return view(parts.jobs.get(job))

    @routes.get(
        "/{job}/events",
        response_class=StreamingResponse,
        responses={200: {"content": _STREAM, "description": "Events."}, **responses(404, 422, 429, 503)},
    )
    async def follow_job(job: JobNumber) -> StreamingResponse:
        """The job as server-sent events, one each time it changes, until it has ended or the service stops."""
        found = await run_in_threadpool(parts.jobs.get, job)
        return _JobStream(parts, found)

    return routes


class _JobStream(EventStream):
    """Holds a place among the streams, and follows its job, from its beginning to its end, however that comes."""

    def __init__(self, parts: "AppServices", job: Job) -> None:
        wake = Wake()
        self._held = ExitStack()
        self._held.enter_context(parts.streams.place())
        follower = parts.jobs.follow(job.id, wake)
        self._held.callback(follower.close)
        super().__init__(_changes(parts, job, follower, wake), self._held.close)


async def _changes(parts: "AppServices", job: Job, follower: Follower, wake: Wake) -> AsyncIterator[str]:
    told: dict[str, Any] | None = None
    while True:
        now = view(parts.jobs.shown(job)).model_dump(mode="json")
        if now != told:
            told = now
            yield f"event: job\ndata: {json.dumps(now)}\n\n"
        if not job.is_open or parts.streams.closed:
            return
        if not await wake.within(parts.streams.ping_interval_s):
            yield ": still there\n\n"
        job = follower.latest or job
