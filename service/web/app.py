"""The FastAPI app: routers by noun, one error format."""

from dataclasses import replace
from types import ModuleType
from typing import Any, Final

from fastapi import Depends, FastAPI
from fastapi_offline import FastAPIOffline

from service import __version__
from service.web import (
    acknowledgements,
    audit,
    catalogue,
    credentials,
    enrolment,
    explanations,
    exports,
    figures,
    fleet,
    forecasts,
    gaps,
    health,
    jobs,
    keys,
    machines,
    maintenance,
    memory,
    metrics,
    models,
    notices,
    problems,
    quarantine,
    ready,
    scores,
    session,
    shelves,
    silent,
    stream,
    timelines,
    users,
    webhooks,
)
from service.web.guard import AuthConfig, AuthMiddleware, check_permissions_complete, require_checked, restrict
from service.web.parts import AppServices
from service.web.permissions import document_rules
from service.web.queries import known_parameters

NOUNS: Final[tuple[ModuleType, ...]] = (
    machines,
    fleet,
    enrolment,
    credentials,
    jobs,
    models,
    memory,
    forecasts,
    stream,
    explanations,
    scores,
    figures,
    timelines,
    exports,
    gaps,
    silent,
    catalogue,
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
    routers = [noun.router(parts) for noun in nouns]
    if nouns is not NOUNS:
        door = replace(door, table=restrict(app, routers, door.table))
    check_permissions_complete(app, routers, door.table)
    for router in routers:
        app.include_router(router)
    if forecasts in nouns:
        routes = (route for router in routers for route in router.routes)
        asked = next(route for route in routes if getattr(route, "path", None) == ready.PATH)
        app.add_middleware(ready.ForecastFastPath, newest=parts.newest, route=asked)
    app.add_middleware(AuthMiddleware, door=door)
    documented = app.openapi

    def openapi() -> dict[str, Any]:
        return document_rules(problems.document(documented()), door.table)

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's own way to extend its document
    return app
