"""Whether forecasts came true."""

from datetime import date
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from wire.enums import Grouping
from wire.forecasts import ForecastStatus, Share
from wire.identity import Identifier
from wire.timestamps import UtcDatetime


class CalibrationBinView(BaseModel):
    """Forecasts that said about the same."""

    predicted: Share = Field(description="Mean probability that was said.")
    observed: Share = Field(description="Share in which the alarm came.")
    pairs: int


class ScoresView(BaseModel):
    """One forecaster's figures, over pairs of a forecast and a code; null where a figure is not defined."""

    pairs: int = Field(description="Pairs of forecast and code that were scored.")
    positives: int = Field(description="Pairs in which the alarm came.")
    predicted: int = Field(description="Pairs in which the alarm was expected.")
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
    reliability: list[CalibrationBinView] = Field(description="Ten bins of equal width; empty ones are left out.")


class ScoreSummaryView(BaseModel):
    """Everyone's figures on the same forecasts."""

    forecasts: int = Field(
        description="Forecasts that were scored. Those 15 minutes apart share most of a horizon …"
    )
    days: int = Field(description="… so this, the days of machines that they cover, says how much is independent.")
    revision_count: int = Field(description="Scored again because something late fell into their horizon.")
    unobserved: int = Field(description="Left out: the machine lost events of their horizon.")
    warming_up: int = Field(description="Made from less than half of the evidence.")
    stale: int = Field(description="Made while the machine's agent was offline or silent.")
    lift_over_persistence: float | None = Field(
        description="How many times persistence's average precision the model's is."
    )
    model: ScoresView = Field(description="What was served.")
    persistence: ScoresView = Field(description="What was in the evidence window comes again.")
    base_rate: ScoresView = Field(
        description="How often the machine's last 90 days held the alarm, where it had a past; announced by the "
        "same thresholds."
    )


class ScoreRow(BaseModel):
    """A line of the scoreboard; of site, machine, code, model_version and day those are given that it is about."""

    site: Identifier | None
    machine: Identifier | None
    code: int | None
    text: str | None = Field(description="What the code means.")
    model_version: str | None
    day: date | None = Field(default=None, description="In UTC, on which the forecasts were made.")
    metrics: ScoreSummaryView


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
    "lift_over_persistence": 1.3927,
    "model": _EXAMPLE_SCORES,
    "persistence": _EXAMPLE_SCORES | {"brier": 0.11, "brier_skill": -0.68, "average_precision": 0.41},
    "base_rate": _EXAMPLE_SCORES | {"brier": 0.0657, "brier_skill": 0.0, "average_precision": 0.38},
}


class ScoreboardView(BaseModel):
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
                            "day": None,
                            "figures": _EXAMPLE_FIGURES,
                        }
                    ],
                }
            ]
        }
    )

    since: UtcDatetime
    until: UtcDatetime
    by: Grouping
    pending: int = Field(
        description="Horizon closed, but not scored yet: most often because the machine was not heard since."
    )
    total: ScoreSummaryView | None = Field(description="All lines together; null while nothing is scored.")
    rows: list[ScoreRow]


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
    predicted: bool = Field(description="Whether it was expected: its probability passed its threshold.")
    occurred: bool
    verdict: Verdict | None = Field(description="Null if the horizon was not heard.")
    persistence: bool = Field(description="Whether it was in the evidence window.")
    base_rate: Share | None = Field(description="How often the machine's horizons held it by then.")


class ScoredForecastView(BaseModel):
    """A stored forecast beside what happened in ``[as_of, horizon_end)``, most likely alarm first."""

    as_of: UtcDatetime
    horizon_end: UtcDatetime
    model_version: str
    status: ForecastStatus
    unobserved: bool = Field(description="Events of the horizon were lost, so what did not come may have come.")
    revision_count: int = Field(description="How often something late fell into the horizon after it was scored.")
    scored_at: UtcDatetime
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
