"""Model versions."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from wire.moment import Moment
from wire.rest.texts import Words
from wire.words import Standing


class ModelView(BaseModel):
    """A version in short."""

    model_config = ConfigDict(protected_namespaces=())

    version: str
    standing: Standing
    parent: str | None = Field(description="The version it was learned on top of.")
    created_at: Moment
    promoted_at: Moment | None
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

    models: list[ModelView]


class Promotion(BaseModel):
    """Why a version should serve."""

    model_config = ConfigDict(extra="forbid")

    reason: Words = Field(max_length=1000, description="Kept in the book of changes.")
    force: bool = Field(default=False, description="Needed for a version that the gate rejected.")


class Rollback(BaseModel):
    """Why to go back."""

    model_config = ConfigDict(extra="forbid")

    reason: Words = Field(max_length=1000, description="Kept in the book of changes.")
