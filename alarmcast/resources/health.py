"""Health: whether the service lives, whether it is ready, and what it has counted."""

from alarmcast.endpoint import Resource, TransportT, download, operation
from alarmcast.requests import RequestSpec
from wire.rest.health import Liveness, Readiness, Status


class Health(Resource[TransportT]):
    """``client.health``."""

    @operation("GET /livez", Liveness)
    def live(self) -> RequestSpec:
        """Return as long as the process answers."""
        return RequestSpec()

    @operation("GET /readyz", Readiness, also=503)
    def ready(self) -> RequestSpec:
        """Return whether events are taken and forecasts given; if not, with what is wrong."""
        return RequestSpec()

    @operation("GET /v1/status", Status)
    def status(self) -> RequestSpec:
        """Return what has been counted since the start, the plant's time and the model that serves."""
        return RequestSpec()

    @download("/metrics")
    def metrics(self) -> RequestSpec:
        """Yield what Prometheus reads, in its text format."""
        return RequestSpec()
