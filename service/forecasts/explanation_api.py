"""Why forecasts say what they say: the past alarms that drive each of them."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query

from service.http.problems import responses
from service.http.request import MachineName, Site
from wire.identity import MachineId
from wire.rest.explanations import ExplanationView
from wire.timestamps import UtcDatetime

if TYPE_CHECKING:
    from service.app.api_services import AppServices


def router(parts: "AppServices") -> APIRouter:
    """Return the route of explanations."""
    routes = APIRouter(prefix="/v1", tags=["forecasts"])

    @routes.get("/machines/{site}/{machine}/explanation", responses=responses(404, 410, 422, 503))
    def explain_forecast(
        site: Site,
        machine: MachineName,
        at: Annotated[
            UtcDatetime | None, Query(description="A past moment; the newest forecast unless given.")
        ] = None,
        code: Annotated[
            int | None,
            Query(ge=0, le=2**31 - 1, description="Of this alarm only; of all in the forecast unless given."),
        ] = None,
        most: Annotated[
            int,
            Query(
                alias="parts",
                ge=1,
                le=100,
                description="How many parts are named; smaller ones are one, `others`.",
            ),
        ] = 6,
    ) -> ExplanationView:
        """Why the forecast says what it says: parts that sum to its difference from what is usual here.

        `reading` says in one sentence how to read them.
        """
        identity = MachineId(site, machine)
        if at is None:
            why = parts.explanations.now(identity, code=code, parts=most)
        else:
            why = parts.explanations.past(identity, at, code=code, parts=most)
        return ExplanationView.model_validate(why, from_attributes=True)

    return routes
