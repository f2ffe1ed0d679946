"""Routes of the scoreboard and of scored forecasts."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated

from fastapi import APIRouter, Query

from service.answers.store import AnswerQuery, AnswerStore
from service.errors import InputRejected
from service.http.problems import responses
from service.http.request import MachineName, Site
from service.machines.catalogue import CatalogueEntry, unknown_code
from service.machines.catalogue_store import CatalogueStore
from service.scoring.models import ScoredForecast
from service.scoring.scoreboard import Scoreboard, ScoreboardQuery, ScoreboardResult
from service.scoring.scores import ScoreSummary
from wire.enums import Grouping, Horizon
from wire.forecasts import EXPECTED_FROM, ForecastStatus
from wire.identity import ID_PATTERN, MachineId
from wire.rest.answers import AnswerCounts
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

_DIGITS = 4
Since = Annotated[
    UtcDatetime | None,
    Query(description="Forecasts issued at or after this time; default 30 days before `until`."),
]
Until = Annotated[UtcDatetime | None, Query(description="Forecasts issued before this time; default now.")]


def router(scoreboard: Scoreboard, catalogue: CatalogueStore, answers: AnswerStore) -> APIRouter:
    """Return the routes of scores."""
    routes = APIRouter(prefix="/v1", tags=["scores"])

    @routes.get("/scoreboard", responses=responses(404, 422))
    def get_scoreboard(
        site: Annotated[str | None, Query(pattern=ID_PATTERN, description="Only of this site.")] = None,
        machine: Annotated[
            str | None, Query(pattern=ID_PATTERN, description="Only of this machine; needs `site`.")
        ] = None,
        since: Since = None,
        until: Until = None,
        by: Annotated[Grouping, Query(description="Group rows by.")] = Grouping.MACHINE,
        status: Annotated[ForecastStatus | None, Query(description="Only forecasts with this status.")] = None,
        horizon: Annotated[
            Horizon, Query(description="Probabilities of the main horizon, of a quarter or of three times of it.")
        ] = Horizon.MAIN,
    ) -> ScoreboardView:
        """Return the accuracy of served forecasts, with the baselines, and the answers of operators."""
        query = ScoreboardQuery(by, site, machine, since, until, status.value if status else None, horizon)
        board = scoreboard.compute(query)
        counts = answers.counts(AnswerQuery(site, machine, since=board.since, until=board.until))
        return _board(board, query, catalogue.entries(), counts)

    @routes.get("/machines/{site}/{machine}/scores", responses=responses(404, 422))
    def list_scores(
        site: Site,
        machine: MachineName,
        since: Since = None,
        until: Until = None,
        limit: Annotated[int, Query(ge=1, le=200, description="How many on a page.")] = 32,
        cursor: Annotated[str | None, Query(max_length=200, description="`next` of the page before.")] = None,
        code: Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Only of this code.")] = None,
        rejections: Annotated[bool, Query(description="Include correct rejections.")] = True,  # noqa: FBT002
    ) -> ScoresPage:
        """List the scored forecasts of a machine with their outcome, newest first."""
        before = read_cursor(cursor) if cursor is not None else None
        page, more = scoreboard.page(MachineId(site, machine), since, until, limit=limit, before_us=before)
        entries = catalogue.entries()
        views = [_forecast(scored, entries, code=code, rejections=rejections) for scored in page]
        return ScoresPage(forecasts=views, next=write_cursor(page[-1].outcome.as_of_us) if more else None)

    return routes


def _board(
    board: ScoreboardResult,
    query: ScoreboardQuery,
    entries: dict[int, CatalogueEntry],
    answers: list[AnswerCounts],
) -> ScoreboardView:
    return ScoreboardView(
        since=board.since,
        until=board.until,
        by=query.by,
        horizon=query.horizon,
        pending=board.pending,
        total=None if board.total is None else _summary(board.total),
        rows=[
            ScoreRow(
                site=key.machine.site if key.machine else None,
                machine=key.machine.machine if key.machine else None,
                code=key.code,
                text=None if key.code is None else (entries.get(key.code) or unknown_code(key.code)).text,
                model_version=None if key.version is None else f"v{key.version}",
                day=key.day,
                metrics=_summary(summary),
            )
            for key, summary in board.rows
        ],
        answers=answers,
    )


def _summary(summary: ScoreSummary) -> ScoreSummaryView:
    return ScoreSummaryView.model_validate(summary, from_attributes=True)


def _forecast(
    scored: ScoredForecast, entries: dict[int, CatalogueEntry], *, code: int | None, rejections: bool
) -> ScoredForecastView:
    outcome = scored.outcome
    alarms = [
        _alarm(scored, column, entries)
        for column in (-scored.probabilities).argsort(kind="stable").tolist()
        if code in (None, int(scored.spec.codes[column]))
        and (rejections or outcome.occurred[column] or _is_expected(scored, column))
    ]
    return ScoredForecastView(
        as_of=from_us(outcome.as_of_us),
        horizon_end=from_us(outcome.horizon_end_us),
        model_version=f"v{scored.spec.version}",
        status=ForecastStatus(scored.status),
        unobserved=outcome.unobserved,
        revision_count=outcome.revision_count,
        scored_at=from_us(scored.scored_us),
        alarms=alarms,
    )


def _alarm(scored: ScoredForecast, column: int, entries: dict[int, CatalogueEntry]) -> CodeScoreView:
    code = int(scored.spec.codes[column])
    entry = entries.get(code) or unknown_code(code)
    expected, occurred = _is_expected(scored, column), bool(scored.outcome.occurred[column])
    rate = float(scored.outcome.base_rate[column])
    return CodeScoreView(
        code=code,
        text=entry.text,
        severity=entry.severity,
        probability=round(float(scored.probabilities[column]), _DIGITS),
        expected=expected,
        occurred=occurred,
        verdict=None if scored.outcome.unobserved else _VERDICTS[expected, occurred],
        persistence=bool(scored.outcome.persisted[column]),
        base_rate=None if rate != rate else round(rate, _DIGITS),  # noqa: PLR0124 - NaN is not itself
    )


def _is_expected(scored: ScoredForecast, column: int) -> bool:
    return round(float(scored.probabilities[column]), _DIGITS) >= EXPECTED_FROM


_VERDICTS = {
    (True, True): Verdict.HIT,
    (False, True): Verdict.MISS,
    (True, False): Verdict.FALSE_ALARM,
    (False, False): Verdict.CORRECT_REJECTION,
}


def write_cursor(as_of_us: int) -> str:
    """Return the cursor of a position as URL-safe text."""
    return urlsafe_b64encode(str(as_of_us).encode()).decode().rstrip("=")


def read_cursor(text: str) -> int:
    """Return the position of a cursor, or raise :class:`InputRejected`."""
    try:
        as_of_us = int(urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("ascii"))
    except ValueError:
        as_of_us = 0
    if not to_us(EARLIEST) <= as_of_us < to_us(LATEST):
        raise InputRejected("The cursor is not valid. Start again without it.")
    return as_of_us
