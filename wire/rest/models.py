"""Model versions."""

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from wire.enums import VersionStatus
from wire.rest.texts import PrintableText
from wire.timestamps import UtcDatetime

_EXAMPLE: Final[dict[str, Any]] = {
    "version": "v3",
    "status": "champion",
    "parent": "v2",
    "created_at": "2026-11-02T03:10:00.000Z",
    "promoted_at": "2026-11-02T03:12:00.000Z",
    "machines": ["padova/capper-1", "padova/filler-1"],
    "summary": "padova/filler-1 learned on top of v2; nothing was forgotten.",
    "weights": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "pruned": False,
}
_EXAMPLE_FIGURES: Final[dict[str, Any]] = {
    "exam": 4,
    "average_precision": 0.571,
    "brier_skill": 0.221,
    "macro_f1": 0.482,
}


class ModelView(BaseModel):
    """A version in short."""

    model_config = ConfigDict(protected_namespaces=(), json_schema_extra={"examples": [_EXAMPLE]})

    version: str
    status: VersionStatus
    parent: str | None = Field(description="The version it was learned on top of.")
    created_at: UtcDatetime
    promoted_at: UtcDatetime | None
    machines: list[str] = Field(description="The machines it has learned, oldest first.")
    summary: str
    weights: str = Field(description="sha256 that names the weights file.")
    pruned: bool = Field(description="Whether the weights have been let go.")


class ExamFigures(BaseModel):
    """How a version did in a machine's exam."""

    exam: int = Field(description="Scores of the same exam can be compared.")
    average_precision: float | None
    brier_skill: float | None
    macro_f1: float | None


class ModelDetail(ModelView):
    """A version in full: its memory, its exams, what was forgotten, how long it took, and the gate's verdict."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                _EXAMPLE
                | {
                    "targets": [26, 139],
                    "report": {"summary": _EXAMPLE["summary"], "windows": {"training": 900, "exam": 310}},
                    "exams": {"padova/filler-1": _EXAMPLE_FIGURES},
                    "codes": {"padova/filler-1": [{"code": 139, "average_precision": 0.61, "positives": 84}]},
                    "matrix": {"v3": {"padova/filler-1": _EXAMPLE_FIGURES}},
                }
            ]
        }
    )

    targets: list[int]
    report: dict[str, Any] = Field(
        description="Windows, memory by machine and by code with its KL to uniform, forgetting, seconds, "
        "data fingerprint, code version, verdict."
    )
    exams: dict[str, ExamFigures] = Field(description="By machine.")
    codes: dict[str, list[dict[str, Any]]] = Field(description="By machine, each code's figures.")
    matrix: dict[str, dict[str, ExamFigures]] = Field(
        description="The same figures of every version this one descends from, oldest first: what was forgotten."
    )


class ModelList(BaseModel):
    """Versions, newest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"models": [_EXAMPLE]}]})

    models: list[ModelView]


_Serving = Annotated[
    str | None,
    Field(
        pattern=r"^v[1-9][0-9]{0,8}$",
        description="The version that serves as far as you know; if another does by now, nothing is changed.",
    ),
]


class Promotion(BaseModel):
    """Why a version should serve."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"reason": "The gate was too strict about lyon/filler-2", "force": True}]},
    )

    reason: PrintableText = Field(max_length=1000, description="Kept in the book of changes.")
    force: bool = Field(default=False, description="Needed for a version that the gate rejected.")
    serving: _Serving = None


class Rollback(BaseModel):
    """Why to go back."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"reason": "It cries wolf on the night shift", "serving": "v3"}]},
    )

    reason: PrintableText = Field(max_length=1000, description="Kept in the book of changes.")
    serving: _Serving = None
