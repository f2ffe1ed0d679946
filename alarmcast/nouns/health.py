"""Health: whether the service lives, whether it is ready, and what it has counted."""

from alarmcast.call import Ask
from alarmcast.endpoint import Noun, S, download, operation
from wire.rest.health import Alive, Readiness, Status


class Health(Noun[S]):
    """``client.health``."""

    @operation("GET /livez", Alive)
    def live(self) -> Ask:
        """Return as long as the process answers."""
        return Ask()

    @operation("GET /readyz", Readiness, also=503)
    def ready(self) -> Ask:
        """Return whether events are taken and forecasts given; if not, with what is wrong."""
        return Ask()

    @operation("GET /v1/status", Status)
    def status(self) -> Ask:
        """Return what has been counted since the start, the plant's time and the model that serves."""
        return Ask()

    @download("/metrics")
    def metrics(self) -> Ask:
        """Yield what Prometheus reads, in its text format."""
        return Ask()
