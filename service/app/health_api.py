"""Routes of liveness, readiness, status and metrics."""

from typing import TYPE_CHECKING

from fastapi import APIRouter, Response

from service.http.principal import can_see, current_sites, current_user
from wire.rest.health import Liveness, Readiness, Status

if TYPE_CHECKING:
    from service.app.service import Service

MEDIA_TYPE = "text/plain; version=0.0.4"
_EXAMPLE = (
    "# HELP alarmcast_events_total Events that came over the broker, by what became of them.\n"
    "# TYPE alarmcast_events_total counter\n"
    'alarmcast_events_total{result="stored"} 18230.0\n'
    'alarmcast_events_total{result="duplicate"} 12.0\n'
)
_TEXT = {MEDIA_TYPE: {"schema": {"type": "string"}, "example": _EXAMPLE}}


class MetricsResponse(Response):
    """Prometheus' text format."""

    media_type = MEDIA_TYPE


def router(service: "Service") -> APIRouter:
    """Return the routes of health."""
    routes = APIRouter(tags=["health"])

    @routes.head("/livez", include_in_schema=False)
    @routes.get("/livez")
    async def check_liveness() -> Liveness:
        """Answers as long as the process does."""
        return Liveness()

    @routes.head("/readyz", include_in_schema=False)
    @routes.get(
        "/readyz", responses={503: {"model": Readiness, "description": "Not ready; `errors` gives the reasons."}}
    )
    def check_readiness(response: Response) -> Readiness:
        """200 if events can be taken and forecasts given, otherwise 503; those who are known learn why."""
        health = service.health(can_see)
        response.status_code = 200 if health.ready else 503
        return Readiness(ready=health.ready, errors=health.errors if current_user() else {})

    @routes.get("/v1/status")
    def get_status() -> Status:
        """The plant's time, the model that serves, what has been counted since the start, and how each part is."""
        health = service.health(can_see)
        return Status(
            **dict(service.status.read(current_sites())),
            plant_time=service.clock.now(),
            model_version=health.model_version,
            ready=health.ready,
            errors=health.errors,
            warnings=health.warnings,
            counts=health.counts,
        )

    @routes.get(
        "/metrics",
        response_class=MetricsResponse,
        responses={200: {"content": _TEXT, "description": "Metrics in Prometheus' text format."}},
    )
    def get_metrics() -> MetricsResponse:
        """What Prometheus reads: counts since the start, and how every part is now.

        `deploy/prometheus` has alerts on them, `deploy/grafana` dashboards. Machines and codes are never labels.
        """
        return MetricsResponse(service.metrics.text())

    return routes
