"""The FastAPI app: routers by noun, one error format."""

from dataclasses import replace
from types import ModuleType
from typing import Any, Final

from fastapi import APIRouter, Depends, FastAPI
from fastapi_offline import FastAPIOffline

from service import __version__
from service.alarm_metrics import api as figures
from service.alarm_metrics import csv_api as exports
from service.alarm_metrics import timeline_api as timelines
from service.app import health_api as health
from service.app import metrics_api as metrics
from service.app.api_services import AppServices
from service.auth import audit_api as audit
from service.auth import keys_api as keys
from service.auth import session_api as session
from service.auth import users_api as users
from service.auth.middleware import (
    AuthConfig,
    AuthMiddleware,
    check_permissions_complete,
    require_checked,
    restrict,
)
from service.broker_access import api as credentials
from service.forecasts import api as forecasts
from service.forecasts import stream_api as stream
from service.http import problems
from service.http.permissions import document_rules
from service.http.query_check import known_parameters
from service.ingest import quarantine_api as quarantine
from service.learning import enrolment_api as enrolment
from service.learning import jobs_api as jobs
from service.learning import memory_api as memory
from service.learning import versions_api as models
from service.machines import api as machines
from service.notifications import acknowledgement_api as acknowledgements
from service.notifications import api as notices
from service.notifications import maintenance_api as maintenance
from service.notifications import shelving_api as shelves
from service.notifications import webhook_api as webhooks
from service.scoring import api as scores

NOUNS: Final[tuple[ModuleType, ...]] = (
    machines,
    enrolment,
    credentials,
    jobs,
    models,
    memory,
    forecasts,
    stream,
    scores,
    figures,
    timelines,
    exports,
    quarantine,
    notices,
    acknowledgements,
    shelves,
    maintenance,
    webhooks,
    session,
    users,
    keys,
    audit,
    health,
    metrics,
)
VITALS: Final = (health, metrics)  # all that a process answers which only takes alarms, or learns
_DESCRIPTION = """
Which alarms will come in the next hours, for every machine of the fleet.

Send an API key or a session's token as `Authorization: Bearer …`; every answer holds only what is yours to see.
Times are UTC. Errors are `application/problem+json` (RFC 9457). Lists come in pages with a cursor.
A query parameter that an address does not know is refused.
Every answer has an `X-Request-Id`, which the service's log names too; send one of your own, and it is taken over.
"""


def create_app(parts: AppServices, door: AuthConfig, nouns: tuple[ModuleType, ...] = NOUNS) -> FastAPI:
    """Build the app on the parts it is given, with a guard at its door."""
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
    routers = [router for noun in nouns for router in _routers(noun, parts)]
    if nouns is not NOUNS:
        door = replace(door, table=restrict(app, routers, door.table))
    check_permissions_complete(app, routers, door.table)
    for router in routers:
        app.include_router(router)
    if forecasts in nouns:
        routes = (route for router in routers for route in router.routes)
        asked = next(route for route in routes if getattr(route, "path", None) == forecasts.PATH)
        app.add_middleware(forecasts.ForecastFastPath, newest=parts.newest, route=asked)
    app.add_middleware(AuthMiddleware, door=door)
    documented = app.openapi

    def openapi() -> dict[str, Any]:
        return document_rules(problems.document(documented()), door.table)

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's own way to extend its document
    return app


def _routers(noun: ModuleType, parts: AppServices) -> list[APIRouter]:
    if noun is machines:
        return machines.routers(parts.machines, parts.log, parts.catalogue, parts.silence)
    if noun is forecasts:
        return forecasts.routers(parts.machines, parts.desk, parts.newest, parts.explanations, parts.fleet)
    if noun is stream:
        sources = stream.StreamSources(parts.streams, parts.machines, parts.newest, parts.catalogue)
        return [stream.router(sources)]
    if noun is quarantine:
        return [quarantine.router(parts.quarantine, parts.replay, parts.audit)]
    return [noun.router(parts)]
