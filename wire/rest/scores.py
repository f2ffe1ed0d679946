"""Accuracy of served forecasts."""

from datetime import date
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from wire.enums import Grouping, Horizon
from wire.forecasts import ForecastStatus, Share
from wire.identity import Identifier
from wire.rest.answers import AnswerCounts
from wire.timestamps import UtcDatetime


class CalibrationBinView(BaseModel):
    """Pairs of similar probability."""

    predicted: Share = Field(description="Mean forecast probability.")
    observed: Share = Field(description="Observed frequency.")
    pairs: int


class ScoresView(BaseModel):
    """Scores of one forecaster over pairs of forecast and code; null where not defined."""

    pairs: int = Field(description="Pairs of forecast and code that were scored.")
    positives: int = Field(description="Pairs in which the alarm occurred.")
    predicted: int = Field(
        description="Pairs in which the probability reached the threshold for the best F1; for "
        "the near and the far horizon 0.5."
    )
    hits: int = Field(description="Pairs in which it was predicted and occurred.")
    precision: Share | None = Field(description="Share of predicted alarms that occurred.")
    recall: Share | None = Field(description="Share of occurred alarms that were predicted.")
    f1: Share | None
    brier: Share | None = Field(description="Mean squared error of the probability; 0 is perfect.")
    brier_skill: float | None = Field(description="Improvement over the base rate: 1 is perfect, 0 no better.")
    average_precision: Share | None = Field(description="Mean over the codes of each machine that occurred.")
    calibration_error: Share | None = Field(description="Expected calibration error (ECE).")
    cold_average_precision: Share | None = Field(
        description="Average precision on cold codes: not raised within a horizon before the forecast."
    )
    cold_brier_skill: float | None = Field(description="Brier skill on cold codes.")
    notifications: int = Field(description="Notifications at a probability of 0.6, with hysteresis.")
    notifications_per_machine_day: float | None
    notification_precision: Share | None = Field(description="Share of them whose alarm occurred in time.")
    onsets: int = Field(description="Alarms after a horizon without them.")
    onsets_announced: Share | None = Field(description="Share of onsets with a notification before.")
    median_lead_minutes: float | None = Field(description="From notification to onset, to a quarter of an hour.")
    reliability: list[CalibrationBinView] = Field(description="Ten bins of equal width; empty ones are omitted.")


class ScoreSummaryView(BaseModel):
    """Scores of model and baselines on the same forecasts."""

    forecasts: int = Field(description="Scored forecasts; their horizons overlap.")
    days: int = Field(description="Machine-days that they cover: the number of independent samples.")
    revision_count: int = Field(description="Re-scored after late data.")
    unobserved: int = Field(description="Not evaluable: events of the horizon were lost.")
    warming_up: int = Field(description="Issued with less than half of the input window observed.")
    stale: int = Field(description="Issued while the agent was offline or silent.")
    lift_over_persistence: float | None = Field(
        description="Average precision of the model divided by that of persistence."
    )
    model: ScoresView = Field(description="The served forecasts.")
    persistence: ScoresView = Field(description="Baseline: alarms of the input window occur again.")
    base_rate: ScoresView = Field(
        description="Baseline: frequency of the alarm in the last 90 days of the machine, with the same "
        "thresholds."
    )


class ScoreRow(BaseModel):
    """A row of the scoreboard; only the keys that rows are grouped by are set."""

    site: Identifier | None
    machine: Identifier | None
    code: int | None
    text: str | None = Field(description="What the code means.")
    model_version: str | None
    day: date | None = Field(default=None, description="UTC day on which the forecasts were issued.")
    metrics: ScoreSummaryView


_EXAMPLE_SCORES: dict[str, Any] = {
    "pairs": 172800,
    "positives": 20736,
    "predicted": 19480,
    "hits": 13140,
    "precision": 0.6745,
    "recall": 0.6337,
    "f1": 0.6535,
    "brier": 0.0512,
    "brier_skill": 0.221,
    "average_precision": 0.571,
    "calibration_error": 0.011,
    "cold_average_precision": 0.412,
    "cold_brier_skill": 0.143,
    "notifications": 84,
    "notifications_per_machine_day": 2.8,
    "notification_precision": 0.69,
    "onsets": 130,
    "onsets_announced": 0.41,
    "median_lead_minutes": 187.5,
    "reliability": [
        {"predicted": 0.04, "observed": 0.03, "pairs": 120400},
        {"predicted": 0.95, "observed": 0.93, "pairs": 6200},
    ],
}
_EXAMPLE_SUMMARY: dict[str, Any] = {
    "forecasts": 2880,
    "days": 30,
    "revision_count": 12,
    "unobserved": 32,
    "warming_up": 0,
    "stale": 4,
    "lift_over_persistence": 1.3927,
    "model": _EXAMPLE_SCORES,
    "persistence": _EXAMPLE_SCORES | {"brier": 0.11, "brier_skill": -0.68, "average_precision": 0.41},
    "base_rate": _EXAMPLE_SCORES | {"brier": 0.0657, "brier_skill": 0.0, "average_precision": 0.38},
}


class ScoreboardView(BaseModel):
    """Scores of served forecasts."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "since": "2026-10-17T08:00:00.000Z",
                    "until": "2026-11-16T08:00:00.000Z",
                    "by": "machine",
                    "horizon": "main",
                    "pending": 3,
                    "total": _EXAMPLE_SUMMARY,
                    "rows": [
                        {
                            "site": "padova",
                            "machine": "filler-1",
                            "code": None,
                            "text": None,
                            "model_version": None,
                            "day": None,
                            "metrics": _EXAMPLE_SUMMARY,
                        }
                    ],
                }
            ]
        }
    )

    since: UtcDatetime
    until: UtcDatetime
    by: Grouping
    horizon: Horizon
    pending: int = Field(
        description="Horizon ended, but not scored yet, usually because the machine has not been seen since."
    )
    total: ScoreSummaryView | None = Field(description="Total of all rows; null while nothing is scored.")
    rows: list[ScoreRow]
    answers: list[AnswerCounts] = Field(
        default=[], description="Answers given in this span, per machine and code, whatever `by` is."
    )


class Verdict(StrEnum):
    """Result of a forecast of one code."""

    HIT = "hit"
    MISS = "miss"
    FALSE_ALARM = "false_alarm"
    CORRECT_REJECTION = "correct_rejection"


class CodeScoreView(BaseModel):
    """Forecast and outcome of one target code."""

    code: int
    text: str
    severity: str
    probability: Share
    expected: bool = Field(description="Whether the probability was at least 0.5.")
    occurred: bool
    verdict: Verdict | None = Field(description="Null if the horizon was not observed.")
    persistence: bool = Field(description="Whether it was in the input window.")
    base_rate: Share | None = Field(description="Frequency in earlier horizons of the machine.")


class ScoredForecastView(BaseModel):
    """A stored forecast with its outcome in ``[as_of, horizon_end)``, most likely alarm first."""

    as_of: UtcDatetime
    horizon_end: UtcDatetime
    model_version: str
    status: ForecastStatus
    unobserved: bool = Field(description="Events of the horizon were lost, so alarms may be missing.")
    revision_count: int = Field(description="How often it was re-scored after late data.")
    scored_at: UtcDatetime
    alarms: list[CodeScoreView]


class ScoresPage(BaseModel):
    """Scored forecasts, newest first; ``next`` is the cursor of the next page, null on the last."""

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
                            "unobserved": False,
                            "revision_count": 0,
                            "scored_at": "2026-11-16T06:05:00.000Z",
                            "alarms": [
                                {
                                    "code": 139,
                                    "text": "Film torn",
                                    "severity": "high",
                                    "probability": 0.81,
                                    "expected": True,
                                    "occurred": True,
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
