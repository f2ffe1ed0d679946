"""Model versions: what each has learned, how it did in every exam, and which of them serves."""

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Request

from service.forecasts.version import Version
from service.http.problems import responses
from service.http.request import actor
from wire.enums import VersionStatus
from wire.rest.models import ExamFigures, ModelDetail, ModelList, ModelView, Promotion, Rollback

if TYPE_CHECKING:
    from service.app.api_services import AppServices

VERSION_PATTERN = r"^v[1-9][0-9]{0,8}$"
VersionName = Annotated[str, Path(pattern=VERSION_PATTERN, description="The version.", examples=["v1"])]


def router(parts: "AppServices") -> APIRouter:
    """Return the routes of models."""
    routes = APIRouter(prefix="/v1/models", tags=["learning"])

    @routes.get("")
    def list_models() -> ModelList:
        """Every version, newest first."""
        champion = parts.versions.champion()
        return ModelList(models=[_view(one, champion) for one in parts.versions.all()])

    # Before the route of one version, whose name this is not.
    @routes.post("/rollback", responses=responses(409, 422, 503))
    def roll_back_model(why: Rollback, request: Request) -> ModelView:
        """Let the version serve again that the champion was learned from."""
        version = parts.version_desk.roll_back(
            who=actor(request), reason=why.reason, serving=_believed(why.serving)
        )
        return _view(version, parts.versions.champion())

    @routes.get("/{version}", responses=responses(404, 422))
    def get_model(version: VersionName) -> ModelDetail:
        """One version in full."""
        known = parts.versions.get(version_number(version))
        matrix = parts.exams.matrix()
        line = lineage(known, {one.id: one for one in parts.versions.all()})
        return ModelDetail(
            **_view(known, parts.versions.champion()).model_dump(),
            targets=list(known.targets),
            report=known.report,
            exams=_figures(matrix.get(known.id, {})),
            codes=parts.exams.by_code(known.id),
            matrix={one.name: _figures(matrix.get(one.id, {})) for one in line},
        )

    @routes.post("/{version}/promote", responses=responses(404, 409, 422, 503))
    def promote_model(version: VersionName, why: Promotion, request: Request) -> ModelView:
        """Let a version serve; one that the gate rejected only by force."""
        promoted = parts.version_desk.promote(
            version_number(version),
            who=actor(request),
            reason=why.reason,
            force=why.force,
            serving=_believed(why.serving),
        )
        return _view(promoted, parts.versions.champion())

    return routes


def _view(version: Version, champion: Version | None) -> ModelView:
    standing = VersionStatus.REJECTED if version.promoted_at is None else VersionStatus.PROMOTED
    if champion is not None and champion.id == version.id:
        standing = VersionStatus.CHAMPION
    return ModelView(
        version=version.name,
        status=standing,
        parent=f"v{version.parent}" if version.parent is not None else None,
        created_at=version.created_at,
        promoted_at=version.promoted_at,
        machines=list(version.learned),
        summary=version.report.get("summary", ""),
        weights=version.weights,
        pruned=version.pruned,
    )


def lineage(version: Version, known: dict[int, Version]) -> list[Version]:
    """Return a version's ancestors and itself, oldest first."""
    line = [version]
    while (parent := line[-1].parent) is not None and parent in known:
        line.append(known[parent])
    return line[::-1]


def _figures(exams: dict[str, dict[str, Any]]) -> dict[str, ExamFigures]:
    return {machine: ExamFigures(**figures) for machine, figures in exams.items()}


def _believed(serving: str | None) -> int | None:
    return None if serving is None else version_number(serving)


def version_number(version: str) -> int:
    """Return the number of a version's name."""
    return int(version.removeprefix("v"))
