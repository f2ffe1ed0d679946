"""What an admin does with versions: look, promote, go back."""

from dataclasses import dataclass

from service.errors import Conflict, InputRejected
from service.forecasts.version import Version, champion_changed_error
from service.forecasts.version_store import VersionStore
from service.learning.report import report_for
from wire.clock import PlantClock


@dataclass(frozen=True)
class VersionService:
    """The flow and its ports."""

    versions: VersionStore
    clock: PlantClock

    def promote(self, number: int, *, who: str, reason: str, force: bool, serving: int | None = None) -> Version:
        """Let a version serve; one that the gate rejected only by force, and only if ``serving`` serves yet."""
        version = self.versions.get(number)
        if version.promoted_at is None and not force:
            raise Conflict(
                f"The gate rejected {version.name}: {_why(version)} To promote it all the same, say force and why."
            )
        return self._let_serve(version, who=who, reason=reason, serving=serving)

    def roll_back(self, *, who: str, reason: str, serving: int | None = None) -> Version:
        """Let the version serve that the champion was learned from, if the champion is ``serving``.

        So two who go back at once go back one version, not two.
        """
        champion = self.versions.champion()
        if champion is not None and serving not in {None, champion.id}:
            raise champion_changed_error(champion.id, believed=serving)
        if champion is None or champion.parent is None:
            raise Conflict("There is no earlier version to go back to.")
        parent = self.versions.get(champion.parent)
        return self._let_serve(parent, who=who, reason=reason, serving=champion.id)

    def _let_serve(self, version: Version, *, who: str, reason: str, serving: int | None) -> Version:
        if not reason.strip():
            raise InputRejected("Say why; the reason is kept with the change.")
        self.versions.promote(version, at=self.clock.now(), who=who, reason=reason, serving=serving)
        return self.versions.get(version.id)


def _why(version: Version) -> str:
    """Return the gate's reasons in full: only people of all sites promote."""
    reasons = report_for(version.report, None).get("verdict", {}).get("reasons", [])
    return " ".join(reasons) or "it gave no reason."
