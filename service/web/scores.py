"""Whether forecasts came true: figures of the fleet, and one machine's forecasts beside what happened."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from service.core.catalogue import CatalogueEntry, unknown_code
from service.core.outcome import ScoredForecast
from service.core.scoring import Grouping, Standing
from service.errors import InputRejected
from service.flows.scoreboard import Board, BoardQuery, Key
from service.web.parts import MachineName, Parts, Site
from service.web.problems import responses
from wire.forecasts import ForecastStatus, Share
from wire.identity import ID_PATTERN, Identifier, MachineId
from wire.micros import micros, moment
from wire.moment import EARLIEST, LATEST, Moment

_DIGITS = 4
Since = Annotated[
    Moment | None,
    Query(description="Forecasts made at or after this moment; 30 days before `until` unless given."),
]
Until = Annotated[Moment | None, Query(description="Forecasts made before this moment; now unless given.")]


class BinView(BaseModel):
    """Forecasts that said about the same."""

    said: Share = Field(description="Mean probability that was said.")
    came: Share = Field(description="Share in which the alarm came.")
    pairs: int


class ScoresView(BaseModel):
    """One forecaster's figures, over pairs of a forecast and a code; null where a figure is not defined."""

    pairs: int = Field(description="Pairs of forecast and code that were scored.")
    positives: int = Field(description="Pairs in which the alarm came.")
    announced: int = Field(description="Pairs in which the alarm was expected.")
    hits: int = Field(description="Pairs in which it was expected and came.")
    precision: Share | None = Field(description="Of what was announced, how much came.")
    recall: Share | None = Field(description="Of what came, how much had been announced.")
    f1: Share | None
    brier: Share | None = Field(description="Mean squared distance of probability and outcome; nought is perfect.")
    brier_skill: float | None = Field(
        description="How much closer than the base rate, where there is one: 1 is perfect, 0 no better."
    )
    average_precision: Share | None = Field(description="Mean over each machine's codes that came.")
    calibration_error: Share | None = Field(description="Mean distance of what was said and what came, in bins.")
    reliability: list[BinView] = Field(description="Ten bins of equal width; empty ones are left out.")


class StandingView(BaseModel):
    """Everyone's figures on the same forecasts."""

    forecasts: int = Field(
        description="Forecasts that were scored. Those 15 minutes apart share most of a horizon …"
    )
    days: int = Field(description="… so this, the days of machines that they cover, says how much is independent.")
    revised: int = Field(description="Scored again because something late fell into their horizon.")
    unheard: int = Field(description="Left out: the machine lost events of their horizon.")
    warming_up: int = Field(description="Made from less than half of the evidence.")
    stale: int = Field(description="Made while the machine's agent was offline or silent.")
    model: ScoresView = Field(description="What was served.")
    persistence: ScoresView = Field(description="What was in the evidence window comes again.")
    base_rate: ScoresView = Field(
        description="How often the machine's last 90 days held the alarm, where it had a past; announced by the "
        "same thresholds."
    )


class LineView(BaseModel):
    """A line of the scoreboard; of site, machine, code and model_version those are given that it is about."""

    site: Identifier | None
    machine: Identifier | None
    code: int | None
    text: str | None = Field(description="What the code means.")
    model_version: str | None
    figures: StandingView


_EXAMPLE_SCORES: dict[str, Any] = {
    "pairs": 172800,
    "positives": 20736,
    "announced": 19480,
    "hits": 13140,
    "precision": 0.6745,
    "recall": 0.6337,
    "f1": 0.6535,
    "brier": 0.0512,
    "brier_skill": 0.221,
    "average_precision": 0.571,
    "calibration_error": 0.011,
    "reliability": [{"said": 0.04, "came": 0.03, "pairs": 120400}, {"said": 0.95, "came": 0.93, "pairs": 6200}],
}
_EXAMPLE_FIGURES: dict[str, Any] = {
    "forecasts": 2880,
    "days": 30,
    "revised": 12,
    "unheard": 32,
    "warming_up": 0,
    "stale": 4,
    "model": _EXAMPLE_SCORES,
    "persistence": _EXAMPLE_SCORES | {"brier": 0.11, "brier_skill": -0.68, "average_precision": 0.41},
    "base_rate": _EXAMPLE_SCORES | {"brier": 0.0657, "brier_skill": 0.0, "average_precision": 0.38},
}


class BoardView(BaseModel):
    """How good the forecasts that were really served have been."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "since": "2026-10-17T08:00:00.000Z",
                    "until": "2026-11-16T08:00:00.000Z",
                    "by": "machine",
                    "waiting": 3,
                    "total": _EXAMPLE_FIGURES,
                    "lines": [
                        {
                            "site": "padova",
                            "machine": "filler-1",
                            "code": None,
                            "text": None,
                            "model_version": None,
                            "figures": _EXAMPLE_FIGURES,
                        }
                    ],
                }
            ]
        }
    )

    since: Moment
    until: Moment
    by: Grouping
    waiting: int = Field(
        description="Horizon closed, but not scored yet: most often because the machine was not heard since."
    )
    total: StandingView | None = Field(description="All lines together; null while nothing is scored.")
    lines: list[LineView]


class Verdict(StrEnum):
    """What a forecast of one code came to."""

    HIT = "hit"
    MISS = "miss"
    FALSE_ALARM = "false_alarm"
    CORRECT_REJECTION = "correct_rejection"


class CodeScoreView(BaseModel):
    """One target code: what was said, and what happened."""

    code: int
    text: str
    severity: str
    probability: Share
    threshold: Share
    announced: bool = Field(description="Whether it was expected: its probability passed its threshold.")
    came: bool
    verdict: Verdict | None = Field(description="Null if the horizon was not heard.")
    persistence: bool = Field(description="Whether it was in the evidence window.")
    base_rate: Share | None = Field(description="How often the machine's horizons held it by then.")


class ScoredForecastView(BaseModel):
    """A stored forecast beside what happened in ``[as_of, horizon_end)``, most likely alarm first."""

    as_of: Moment
    horizon_end: Moment
    model_version: str
    status: ForecastStatus
    unheard: bool = Field(description="Events of the horizon were lost, so what did not come may have come.")
    revised: int = Field(description="How often something late fell into the horizon after it was scored.")
    scored_at: Moment
    alarms: list[CodeScoreView]


class ScoresPage(BaseModel):
    """Scored forecasts, newest first; ``next`` is the cursor of the page after this one, null on the last."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "forecasts": [
                        {
                            "as_of": "2026-11-15T22:00:00.000Z",
                            "horizon_end": "2026-11-16T06:00:00.000Z",
                            "model_version": "v3",
                            "status": "ok",
                            "unheard": False,
                            "revised": 0,
                            "scored_at": "2026-11-16T06:05:00.000Z",
                            "alarms": [
                                {
                                    "code": 139,
                                    "text": "Film torn",
                                    "severity": "high",
                                    "probability": 0.81,
                                    "threshold": 0.42,
                                    "announced": True,
                                    "came": True,
                                    "verdict": "hit",
                                    "persistence": True,
                                    "base_rate": 0.33,
                                }
                            ],
                        }
                    ],
                    "next": "MTc5NDc4NTQwMDAwMDAwMA",
                }
            ]
        }
    )

    forecasts: list[ScoredForecastView]
    next: str | None


def router(parts: Parts) -> APIRouter:
    """Return the routes of scores."""
    routes = APIRouter(prefix="/v1", tags=["scores"])

    @routes.get("/scoreboard", responses=responses(404, 422))
    def scoreboard(
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
    ) -> BoardView:
        """How good the forecasts that were really served have been, beside persistence and the base rate."""
        query = BoardQuery(by, site, machine, since, until, status.value if status else None)
        return _board(parts.scoreboard.board(query), by, parts.catalogue.entries())

    @routes.get("/machines/{site}/{machine}/scores", responses=responses(404, 422))
    def scores(
        site: Site,
        machine: MachineName,
        since: Since = None,
        until: Until = None,
        limit: Annotated[int, Query(ge=1, le=200)] = 32,
        cursor: Annotated[str | None, Query(max_length=200, description="`next` of the page before.")] = None,
        code: Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Of this code only.")] = None,
        rejections: Annotated[bool, Query(description="List also what neither was announced nor came.")] = True,  # noqa: FBT002
    ) -> ScoresPage:
        """Were the forecasts right? Each one whose horizon has closed, beside what happened, newest first."""
        before = _read_cursor(cursor) if cursor is not None else None
        found, more = parts.scoreboard.past(MachineId(site, machine), since, until, limit=limit, before_us=before)
        entries = parts.catalogue.entries()
        views = [_forecast(one, entries, code=code, rejections=rejections) for one in found]
        return ScoresPage(forecasts=views, next=_write_cursor(found[-1].outcome.as_of_us) if more else None)

    return routes


def _board(board: Board, by: Grouping, entries: dict[int, CatalogueEntry]) -> BoardView:
    return BoardView(
        since=board.since,
        until=board.until,
        by=by,
        waiting=board.waiting,
        total=None if board.total is None else _figures(board.total),
        lines=[_line(key, line, entries) for key, line in board.lines],
    )


def _line(key: Key, line: Standing, entries: dict[int, CatalogueEntry]) -> LineView:
    site, machine = key.machine or (None, None)
    entry = None if key.code is None else entries.get(key.code) or unknown_code(key.code)
    return LineView(
        site=site,
        machine=machine,
        code=key.code,
        text=entry.text if entry else None,
        model_version=None if key.version is None else f"v{key.version}",
        figures=_figures(line),
    )


def _figures(standing: Standing) -> StandingView:
    return StandingView.model_validate(standing, from_attributes=True)


def _forecast(
    one: ScoredForecast, entries: dict[int, CatalogueEntry], *, code: int | None, rejections: bool
) -> ScoredForecastView:
    outcome = one.outcome
    alarms = [
        _alarm(one, column, entries)
        for column in (-one.probabilities).argsort(kind="stable").tolist()
        if code in (None, int(one.measure.codes[column]))
        and (rejections or outcome.came[column] or outcome.announced[column])
    ]
    return ScoredForecastView(
        as_of=moment(outcome.as_of_us),
        horizon_end=moment(outcome.horizon_end_us),
        model_version=f"v{one.measure.version}",
        status=ForecastStatus(one.status),
        unheard=outcome.unheard,
        revised=outcome.revised,
        scored_at=moment(one.scored_us),
        alarms=alarms,
    )


def _alarm(one: ScoredForecast, column: int, entries: dict[int, CatalogueEntry]) -> CodeScoreView:
    code = int(one.measure.codes[column])
    entry = entries.get(code) or unknown_code(code)
    announced, came = bool(one.outcome.announced[column]), bool(one.outcome.came[column])
    rate = float(one.outcome.base_rate[column])
    return CodeScoreView(
        code=code,
        text=entry.text,
        severity=entry.severity,
        probability=round(float(one.probabilities[column]), _DIGITS),
        threshold=round(float(one.measure.thresholds[column]), _DIGITS),
        announced=announced,
        came=came,
        verdict=None if one.outcome.unheard else _VERDICTS[announced, came],
        persistence=bool(one.outcome.persisted[column]),
        base_rate=None if rate != rate else round(rate, _DIGITS),  # noqa: PLR0124 - NaN is not itself
    )


_VERDICTS = {
    (True, True): Verdict.HIT,
    (False, True): Verdict.MISS,
    (True, False): Verdict.FALSE_ALARM,
    (False, False): Verdict.CORRECT_REJECTION,
}


def _write_cursor(as_of_us: int) -> str:
    return urlsafe_b64encode(str(as_of_us).encode()).decode().rstrip("=")


def _read_cursor(text: str) -> int:
    try:
        as_of_us = int(urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("ascii"))
    except ValueError:
        as_of_us = 0
    if not micros(EARLIEST) <= as_of_us < micros(LATEST):
        raise InputRejected("The cursor is not one that a page gave; start again without it.")
    return as_of_us
