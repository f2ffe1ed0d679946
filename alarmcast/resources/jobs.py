"""Jobs: what is being learned and how far it is; once, in a list, or as it happens."""

from alarmcast.endpoint import Resource, TransportT, events, operation
from alarmcast.requests import RequestSpec
from wire.rest.jobs import JobList, JobView


class Jobs(Resource[TransportT]):
    """``client.jobs``."""

    @operation("GET /v1/jobs", JobList)
    def list(self, *, limit: int = 100) -> RequestSpec:
        """Return the latest jobs."""
        return RequestSpec(params={"limit": limit})

    @operation("GET /v1/jobs/{job}", JobView)
    def get(self, job: int) -> RequestSpec:
        """Return one job: its stage, epoch and loss, and in the end its verdict."""
        return RequestSpec(at={"job": job})

    @events("/v1/jobs/{job}/events", {"job": JobView})
    def stream(self, job: int) -> RequestSpec:
        """Yield the job each time it changes, until it has ended."""
        return RequestSpec(at={"job": job})
