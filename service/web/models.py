"""Model versions: what each has learned, how it did in every exam, and which of them serves."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field

from service.core.version import Standing, Version
from service.web.parts import Parts, Words, who
from service.web.problems import responses
from wire.moment import Moment

VersionName = Annotated[str, Path(pattern=r"^v[1-9][0-9]{0,8}$", description="The version.", examples=["v1"])]


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


def router(parts: Parts) -> APIRouter:
    """Return the routes of models."""
    routes = APIRouter(prefix="/v1/models", tags=["learning"])

    @routes.get("")
    def list_models() -> ModelList:
        """Every version, newest first."""
        champion = parts.versions.champion()
        return ModelList(models=[_view(one, champion) for one in parts.versions.all()])

    # Before the route of one version, whose name this is not.
    @routes.post("/rollback", responses=responses(409, 422, 503))
    def roll_back(why: Rollback, request: Request) -> ModelView:
        """Let the version serve again that the champion was learned from."""
        version = parts.version_desk.roll_back(who=who(request), reason=why.reason)
        return _view(version, parts.versions.champion())

    @routes.get("/{version}", responses=responses(404, 422))
    def one_model(version: VersionName) -> ModelDetail:
        """One version in full."""
        known = parts.versions.get(_number(version))
        matrix = parts.exams.matrix()
        line = _lineage(known, {one.number: one for one in parts.versions.all()})
        return ModelDetail(
            **_view(known, parts.versions.champion()).model_dump(),
            targets=list(known.targets),
            report=known.report,
            exams=_figures(matrix.get(known.number, {})),
            codes=parts.exams.by_code(known.number),
            matrix={one.name: _figures(matrix.get(one.number, {})) for one in line},
        )

    @routes.post("/{version}/promote", responses=responses(404, 409, 422, 503))
    def promote(version: VersionName, why: Promotion, request: Request) -> ModelView:
        """Let a version serve; one that the gate rejected only by force."""
        promoted = parts.version_desk.promote(
            _number(version), who=who(request), reason=why.reason, force=why.force
        )
        return _view(promoted, parts.versions.champion())

    return routes


def _view(version: Version, champion: Version | None) -> ModelView:
    standing = Standing.REJECTED if version.promoted_at is None else Standing.PROMOTED
    if champion is not None and champion.number == version.number:
        standing = Standing.CHAMPION
    return ModelView(
        version=version.name,
        standing=standing,
        parent=f"v{version.parent}" if version.parent is not None else None,
        created_at=version.created_at,
        promoted_at=version.promoted_at,
        machines=list(version.learned),
        summary=version.report.get("summary", ""),
        weights=version.weights,
        pruned=version.pruned,
    )


def _lineage(version: Version, known: dict[int, Version]) -> list[Version]:
    """Return a version's ancestors and itself, oldest first."""
    line = [version]
    while (parent := line[-1].parent) is not None and parent in known:
        line.append(known[parent])
    return line[::-1]


def _figures(exams: dict[str, dict[str, Any]]) -> dict[str, ExamFigures]:
    return {machine: ExamFigures(**figures) for machine, figures in exams.items()}


def _number(version: str) -> int:
    return int(version.removeprefix("v"))
