"""Scores: accuracy of served forecasts."""

from datetime import datetime

from alarmcast.endpoint import Resource, TransportT, operation, pages
from alarmcast.requests import MachineName, RequestSpec, path_params
from wire.enums import Grouping, Horizon
from wire.forecasts import ForecastStatus
from wire.rest.scores import ScoreboardView, ScoresPage


class Scores(Resource[TransportT]):
    """``client.scores``."""

    @operation("GET /v1/scoreboard", ScoreboardView)
    def scoreboard(
        self,
        *,
        site: str | None = None,
        machine: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        by: Grouping = Grouping.MACHINE,
        status: ForecastStatus | None = None,
        horizon: Horizon = Horizon.MAIN,
    ) -> RequestSpec:
        """Return the accuracy of served forecasts, with the persistence and base-rate baselines."""
        when = {"since": since, "until": until}
        rows = {"by": by, "status": status, "horizon": horizon}
        return RequestSpec(params={"site": site, "machine": machine, **when, **rows})

    @operation("GET /v1/machines/{site}/{machine}/scores", ScoresPage)
    def page(
        self,
        machine: MachineName,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 32,
        cursor: str | None = None,
        code: int | None = None,
        rejections: bool = True,
    ) -> RequestSpec:
        """Return one page of scored forecasts of a machine, newest first."""
        filters = {"since": since, "until": until, "code": code, "rejections": rejections}
        return RequestSpec(at=path_params(machine), params={"limit": limit, "cursor": cursor, **filters})

    all = pages(page, lambda page: page.forecasts)
