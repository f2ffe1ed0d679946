"""Whether the process lives, whether it is ready, and what it has counted."""

from fastapi import APIRouter, Response

from service.app.api_services import AppServices
from service.http.principal import current_user
from wire.rest.health import Liveness, Readiness, Status


def router(parts: AppServices) -> APIRouter:
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
        health = parts.health()
        response.status_code = 200 if health.ready else 503
        return Readiness(ready=health.ready, errors=health.errors if current_user() else {})

    @routes.get("/v1/status")
    def get_status() -> Status:
        """The plant's time, the model that serves, what has been counted since the start, and how each part is."""
        health = parts.health()
        return Status(
            **dict(parts.condition()),
            plant_time=parts.clock.now(),
            model_version=health.model_version,
            ready=health.ready,
            errors=health.errors,
            warnings=health.warnings,
            counts=health.counts,
        )

    return routes
