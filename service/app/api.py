"""The FastAPI app: routers by noun, one error format."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from fastapi import APIRouter, Depends, FastAPI
from fastapi_offline import FastAPIOffline

from service import __version__
from service.alarm_metrics.build import build_routers as alarm_metrics_routers
from service.app import health_api as health
from service.app import metrics_api as metrics
from service.app.api_services import AppServices
from service.auth import api as auth
from service.auth.middleware import (
    AuthConfig,
    AuthMiddleware,
    check_permissions_complete,
    require_checked,
    restrict,
)
from service.broker_access import api as credentials
from service.forecasts import api as forecasts
from service.forecasts import explanation_api as explanations
from service.forecasts import fast_path as ready
from service.forecasts import fleet_api as fleet
from service.forecasts import stream_api as stream
from service.http import problems
from service.http.permissions import document_rules
from service.http.query_check import known_parameters
from service.ingest import quarantine_api as quarantine
from service.learning.build import learning_routers
from service.machines import api as machines
from service.machines import catalogue_api as catalogue
from service.machines import gaps_api as gaps
from service.machines import silence_api as silent

RouterFactory = Callable[[AppServices], APIRouter]
NOUNS: Final[tuple[RouterFactory, ...]] = (
    machines.router,
    fleet.router,
    lambda services: credentials.router(services.credentials),
    forecasts.router,
    stream.router,
    explanations.router,
    gaps.router,
    silent.router,
    catalogue.router,
    quarantine.router,
    lambda services: auth.session_router(services.sign_in),
    lambda services: auth.users_router(services.people),
    lambda services: auth.keys_router(services.people),
    lambda services: auth.audit_router(services.audit),
    health.router,
    metrics.router,
)
VITALS: Final[tuple[RouterFactory, ...]] = (
    health.router,
    metrics.router,
)  # of processes without the API
_DESCRIPTION = """
Which alarms will come in the next hours, for every machine of the fleet.

Send an API key or a session's token as `Authorization: Bearer …`; every answer holds only what is yours to see.
Times are UTC. Errors are `application/problem+json` (RFC 9457). Lists come in pages with a cursor.
A query parameter that an address does not know is refused.
Every answer has an `X-Request-Id`, which the service's log names too; send one of your own, and it is taken over.
"""


def _feature_routers(parts: AppServices) -> list[APIRouter]:
    """Return the routes of the features that build themselves."""
    machines, catalogue = parts.machines, parts.catalogue
    return [
        parts.scoring.router(machines, catalogue),
        *alarm_metrics_routers(
            parts.settings,
            machines=machines,
            events=parts.log,
            catalogue=catalogue,
            clock=parts.clock,
            excluded_spans=parts.notifications.suppression.excluded_spans,
            silent_machines=lambda: parts.silence.found,
        ),
        *parts.notifications.routers(machines, catalogue, parts.audit),
    ]


def create_app(parts: AppServices, config: AuthConfig, nouns: tuple[RouterFactory, ...] = NOUNS) -> FastAPI:
    """Build the app with its routes and middleware."""
    # Offline: its documentation brings its own scripts, because a plant may have no internet.
    app = FastAPIOffline(
        title="Alarmcast",
        version=__version__,
        description=_DESCRIPTION,
        redirect_slashes=False,
        dependencies=[Depends(require_checked), Depends(known_parameters)],
        generate_unique_id_function=lambda route: route.name,  # an operation is called as its function is
    )
    problems.install(app)
    routers = [router(parts) for router in nouns]
    if nouns is NOUNS:
        routers += [*learning_routers(parts.learning), *_feature_routers(parts)]
    if nouns is not NOUNS:
        config = replace(config, table=restrict(app, routers, config.table))
    check_permissions_complete(app, routers, config.table)
    for router in routers:
        app.include_router(router)
    if nouns is NOUNS:
        routes = (route for router in routers for route in router.routes)
        asked = next(route for route in routes if getattr(route, "path", None) == ready.PATH)
        app.add_middleware(ready.ForecastFastPath, newest=parts.newest, route=asked)
    app.add_middleware(AuthMiddleware, config=config)
    documented = app.openapi

    def openapi() -> dict[str, Any]:
        return document_rules(problems.document(documented()), config.table)

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's own way to extend its document
    return app
