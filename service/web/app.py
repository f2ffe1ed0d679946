"""The FastAPI app: routers by noun, one error format."""

from typing import Any

from fastapi import FastAPI
from fastapi_offline import FastAPIOffline

from service import __version__
from service.web import (
    acknowledgements,
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
    machines,
    maintenance,
    memory,
    models,
    notices,
    problems,
    quarantine,
    scores,
    shelves,
    silent,
    stream,
    timelines,
    webhooks,
)
from service.web.parts import Parts

_DESCRIPTION = """
Which alarms will come in the next hours, for every machine of the fleet.

Times are UTC. Errors are `application/problem+json` (RFC 9457). Lists come in pages with a cursor.
"""


def create_app(parts: Parts) -> FastAPI:
    """Build the app on the parts it is given."""
    # Offline: its documentation brings its own scripts, because a plant may have no internet.
    app = FastAPIOffline(
        title="Alarmcast",
        version=__version__,
        description=_DESCRIPTION,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,  # an operation is called as its function is
    )
    problems.install(app)
    nouns = (
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
        health,
    )
    for noun in nouns:
        app.include_router(noun.router(parts))
    documented = app.openapi

    def openapi() -> dict[str, Any]:
        return problems.document(documented())

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's own way to extend its document
    return app
