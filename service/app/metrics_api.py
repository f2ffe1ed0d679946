"""What Prometheus reads."""

from fastapi import APIRouter, Response

from service.app.metrics import Metrics

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


def router(metrics: Metrics) -> APIRouter:
    """Return the route of metrics."""
    routes = APIRouter(tags=["health"])

    @routes.get(
        "/metrics",
        response_class=MetricsResponse,
        responses={200: {"content": _TEXT, "description": "Metrics in Prometheus' text format."}},
    )
    def get_metrics() -> MetricsResponse:
        """What Prometheus reads: counts since the start, and how every part is now.

        `deploy/prometheus` has alerts on them, `deploy/grafana` dashboards. Machines and codes are never labels.
        """
        return MetricsResponse(metrics.text())

    return routes
