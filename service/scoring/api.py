"""Whether forecasts came true: figures of the fleet, and one machine's forecasts beside what happened."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query

from service.errors import InputRejected
from service.http.problems import responses
from service.http.request import MachineName, Site
from service.machines.catalogue import CatalogueEntry, unknown_code
from service.scoring.outcome import ScoredForecast
from service.scoring.scoreboard import ScoreboardQuery, ScoreboardResult, ScoreKey
from service.scoring.scores import ScoreSummary
from wire.enums import Grouping
from wire.forecasts import ForecastStatus
from wire.identity import ID_PATTERN, MachineId
from wire.rest.scores import (
    CodeScoreView,
    ScoreboardView,
    ScoredForecastView,
    ScoreRow,
    ScoresPage,
    ScoreSummaryView,
    Verdict,
)
from wire.timestamps import EARLIEST, LATEST, UtcDatetime, from_us, to_us

if TYPE_CHECKING:
    from service.app.api_services import AppServices

_DIGITS = 4
Since = Annotated[
    UtcDatetime | None,
    Query(description="Forecasts made at or after this moment; 30 days before `until` unless given."),
]
Until = Annotated[UtcDatetime | None, Query(description="Forecasts made before this moment; now unless given.")]


def router(parts: "AppServices") -> APIRouter:
    """Return the routes of scores."""
    routes = APIRouter(prefix="/v1", tags=["scores"])

    @routes.get("/scoreboard", responses=responses(404, 422))
    def get_scoreboard(
        site: Annotated[str | None, Query(pattern=ID_PATTERN, description="Of this plant only.")] = None,
        machine: Annotated[
            str | None, Query(pattern=ID_PATTERN, description="Of this machine only; needs `site`.")
        ] = None,
        since: Since = None,
        until: Until = None,
        by: Annotated[Grouping, Query(description="What there is a line for.")] = Grouping.MACHINE,
        status: Annotated[
            ForecastStatus | None, Query(description="Only forecasts that were served with this status.")
        ] = None,
    ) -> ScoreboardView:
        """How good the forecasts that were really served have been, beside persistence and the base rate."""
        query = ScoreboardQuery(by, site, machine, since, until, status.value if status else None)
        return _board(parts.scoreboard.compute(query), by, parts.catalogue.entries())

    @routes.get("/machines/{site}/{machine}/scores", responses=responses(404, 422))
    def list_scores(
        site: Site,
        machine: MachineName,
        since: Since = None,
        until: Until = None,
        limit: Annotated[int, Query(ge=1, le=200, description="How many on a page.")] = 32,
        cursor: Annotated[str | None, Query(max_length=200, description="`next` of the page before.")] = None,
        code: Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Of this code only.")] = None,
        rejections: Annotated[bool, Query(description="List also what neither was announced nor came.")] = True,  # noqa: FBT002
    ) -> ScoresPage:
        """Were the forecasts right? Each one whose horizon has closed, beside what happened, newest first."""
        before = read_cursor(cursor) if cursor is not None else None
        found, more = parts.scoreboard.past(MachineId(site, machine), since, until, limit=limit, before_us=before)
        entries = parts.catalogue.entries()
        views = [_forecast(one, entries, code=code, rejections=rejections) for one in found]
        return ScoresPage(forecasts=views, next=write_cursor(found[-1].outcome.as_of_us) if more else None)

    return routes


def _board(board: ScoreboardResult, by: Grouping, entries: dict[int, CatalogueEntry]) -> ScoreboardView:
    return ScoreboardView(
        since=board.since,
        until=board.until,
        by=by,
        pending=board.waiting,
        total=None if board.total is None else _figures(board.total),
        rows=[_line(key, line, entries) for key, line in board.lines],
    )


def _line(key: ScoreKey, line: ScoreSummary, entries: dict[int, CatalogueEntry]) -> ScoreRow:
    site, machine = key.machine or (None, None)
    entry = None if key.code is None else entries.get(key.code) or unknown_code(key.code)
    return ScoreRow(
        site=site,
        machine=machine,
        code=key.code,
        text=entry.text if entry else None,
        model_version=None if key.version is None else f"v{key.version}",
        day=key.day,
        metrics=_figures(line),
    )


def _figures(standing: ScoreSummary) -> ScoreSummaryView:
    return ScoreSummaryView.model_validate(standing, from_attributes=True)


def _forecast(
    one: ScoredForecast, entries: dict[int, CatalogueEntry], *, code: int | None, rejections: bool
) -> ScoredForecastView:
    outcome = one.outcome
    alarms = [
        _alarm(one, column, entries)
        for column in (-one.probabilities).argsort(kind="stable").tolist()
        if code in (None, int(one.spec.codes[column]))
        and (rejections or outcome.occurred[column] or outcome.predicted[column])
    ]
    return ScoredForecastView(
        as_of=from_us(outcome.as_of_us),
        horizon_end=from_us(outcome.horizon_end_us),
        model_version=f"v{one.spec.version}",
        status=ForecastStatus(one.status),
        unobserved=outcome.unobserved,
        revision_count=outcome.revision_count,
        scored_at=from_us(one.scored_us),
        alarms=alarms,
    )


def _alarm(one: ScoredForecast, column: int, entries: dict[int, CatalogueEntry]) -> CodeScoreView:
    code = int(one.spec.codes[column])
    entry = entries.get(code) or unknown_code(code)
    announced, came = bool(one.outcome.predicted[column]), bool(one.outcome.occurred[column])
    rate = float(one.outcome.base_rate[column])
    return CodeScoreView(
        code=code,
        text=entry.text,
        severity=entry.severity,
        probability=round(float(one.probabilities[column]), _DIGITS),
        threshold=round(float(one.spec.thresholds[column]), _DIGITS),
        predicted=announced,
        occurred=came,
        verdict=None if one.outcome.unobserved else _VERDICTS[announced, came],
        persistence=bool(one.outcome.persisted[column]),
        base_rate=None if rate != rate else round(rate, _DIGITS),  # noqa: PLR0124 - NaN is not itself
    )


_VERDICTS = {
    (True, True): Verdict.HIT,
    (False, True): Verdict.MISS,
    (True, False): Verdict.FALSE_ALARM,
    (False, False): Verdict.CORRECT_REJECTION,
}


def write_cursor(as_of_us: int) -> str:
    """Return a place in a list as text that fits into an address."""
    return urlsafe_b64encode(str(as_of_us).encode()).decode().rstrip("=")


def read_cursor(text: str) -> int:
    """Return the place that a cursor names, or raise :class:`InputRejected`."""
    try:
        as_of_us = int(urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("ascii"))
    except ValueError:
        as_of_us = 0
    if not to_us(EARLIEST) <= as_of_us < to_us(LATEST):
        raise InputRejected("The cursor is not one that a page gave; start again without it.")
    return as_of_us
