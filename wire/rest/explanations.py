"""Why forecasts say what they say."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from wire.enums import PartKind
from wire.forecasts import Share
from wire.identity import Identifier
from wire.timestamps import UtcDatetime


class ContributionView(BaseModel):
    """One thing that moved a forecast away from what is usual for the machine."""

    kind: PartKind
    code: int | None = Field(description="The past alarm it is about; null for condition and others.")
    text: str = Field(description="What it is about, in words.")
    contribution: float = Field(
        description="By how much it raises (or, below nought, lowers) the log-odds of the forecast alarm."
    )
    seen: int | None = Field(
        description="Events of the code, or of the whole machine, in the evidence window; null for others."
    )
    last_seen: UtcDatetime | None = Field(
        description="When the last of them came, also before the evidence window; null if not within reach."
    )
    share: Share | None = Field(
        description="Share of the evidence that is this code, repeats collapsed, as the model reads it; "
        "only where the kind is alarm."
    )
    baseline_share: Share | None = Field(description="The same, in the mean over the past moments.")
    sentence: str = Field(description="What was seen, as a person would say it.")


class ExplainedAlarm(BaseModel):
    """One target code: how far its forecast lies from the usual, and the parts that make the difference."""

    code: int
    text: str
    severity: str
    probability: Share = Field(description="As the forecast has it.")
    baseline_probability: Share = Field(
        description="What the model usually says of this machine: of usual_log_odds."
    )
    log_odds: float = Field(description="ln(p / (1 - p)) of the probability.")
    baseline_log_odds: float = Field(description="Mean of the log-odds that the model gives the past moments.")
    contributions: list[ContributionView] = Field(
        description="Largest first, others last; contributions sum to log_odds - usual_log_odds."
    )


_EXAMPLE_PARTS: list[dict[str, Any]] = [
    {
        "kind": "recency",
        "code": 139,
        "text": "Film torn",
        "contribution": 1.4812,
        "seen": 3,
        "last_seen": "2026-11-16T07:47:00.000Z",
        "share": None,
        "baseline_share": None,
        "sentence": "139 Film torn last occurred 20 minutes ago.",
    },
    {
        "kind": "alarm",
        "code": 137,
        "text": "Film splice",
        "contribution": 0.4127,
        "seen": 4,
        "last_seen": "2026-11-16T07:31:00.000Z",
        "share": 0.1481,
        "baseline_share": 0.0312,
        "sentence": "137 Film splice occurred 4 times, last 36 min ago: a larger share of the alarms than usual.",
    },
    {
        "kind": "others",
        "code": None,
        "text": "Everything else",
        "contribution": -0.1133,
        "seen": None,
        "last_seen": None,
        "share": None,
        "baseline_share": None,
        "sentence": "14 other factors.",
    },
]


_EXAMPLE: dict[str, Any] = {
    "code": 139,
    "text": "Film torn",
    "severity": "high",
    "probability": 0.8124,
    "baseline_probability": 0.4219,
    "log_odds": 1.4655,
    "baseline_log_odds": -0.3151,
    "contributions": _EXAMPLE_PARTS,
}


class ExplanationView(BaseModel):
    """Why a machine's forecast says what it says, in the order of the forecast."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "site": "padova",
                    "machine": "filler-1",
                    "as_of": "2026-11-16T08:07:00.000Z",
                    "model_version": "v3",
                    "hindsight": False,
                    "baseline_samples": 61,
                    "reading": "Each part moves the log-odds of the alarm away from what is usual for it, …",
                    "explanations": [_EXAMPLE],
                }
            ]
        }
    )

    site: Identifier
    machine: Identifier
    as_of: UtcDatetime = Field(
        description="Without `at`, that of the newest forecast, which is what is explained."
    )
    model_version: str
    hindsight: bool = Field(description="True if the model was not yet serving at as_of.")
    baseline_samples: int = Field(
        description="Over how many past moments the usual was taken, every 11 hours of the last 28 days; with 0 "
        "it is what the model says of a machine without any events."
    )
    reading: str = Field(description="How to read it, in one sentence.")
    explanations: list[ExplainedAlarm]
