"""Jobs: what is being learned and how far it is; once, in a list, or as it happens."""

from alarmcast.call import Ask
from alarmcast.endpoint import Noun, S, events, operation
from wire.rest.jobs import JobList, JobView


class Jobs(Noun[S]):
    """``client.jobs``."""

    @operation("GET /v1/jobs", JobList)
    def list(self, *, limit: int = 100) -> Ask:
        """Return the latest jobs."""
        return Ask(params={"limit": limit})

    @operation("GET /v1/jobs/{job}", JobView)
    def get(self, job: int) -> Ask:
        """Return one job: its stage, epoch and loss, and in the end its verdict."""
        return Ask(at={"job": job})

    @events("/v1/jobs/{job}/events", {"job": JobView})
    def follow(self, job: int) -> Ask:
        """Yield the job each time it changes, until it has ended."""
        return Ask(at={"job": job})
