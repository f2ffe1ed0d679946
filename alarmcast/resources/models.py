"""Model versions: what each has learned, how it did, and which of them serves."""

from alarmcast.endpoint import Resource, TransportT, operation
from alarmcast.requests import RequestSpec
from wire.rest.models import ModelDetail, ModelList, ModelView, Promotion, Rollback


class Models(Resource[TransportT]):
    """``client.models``; a version is named like ``v3``."""

    @operation("GET /v1/models", ModelList)
    def list(self) -> RequestSpec:
        """Return every version, newest first."""
        return RequestSpec()

    @operation("GET /v1/models/{version}", ModelDetail)
    def get(self, version: str) -> RequestSpec:
        """Return one version in full."""
        return RequestSpec(at={"version": version})

    @operation("POST /v1/models/{version}/promote", ModelView)
    def promote(
        self, version: str, *, reason: str, force: bool = False, serving: str | None = None
    ) -> RequestSpec:
        """Let a version serve; one that the gate rejected only by force.

        If ``serving`` is given and another version serves by now, nothing changes and ``Conflict`` is raised.
        """
        body = Promotion(reason=reason, force=force, serving=serving)
        return RequestSpec(at={"version": version}, body=body)

    @operation("POST /v1/models/rollback", ModelView)
    def roll_back(self, *, reason: str, serving: str | None = None) -> RequestSpec:
        """Let the version serve again that the champion was learned from; return it.

        If ``serving`` is given and another version serves by now, nothing changes and ``Conflict`` is raised: so
        two who go back at once go back one version and not two.
        """
        return RequestSpec(body=Rollback(reason=reason, serving=serving))
