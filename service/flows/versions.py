"""What an admin does with versions: look, promote, go back."""

from dataclasses import dataclass

from service.core.version import Version
from service.errors import Conflict, InputRejected
from service.flows.ports import Versions
from wire.clock import PlantClock


@dataclass(frozen=True)
class VersionDesk:
    """The flow and its ports."""

    versions: Versions
    clock: PlantClock

    def promote(self, number: int, *, who: str, reason: str, force: bool) -> Version:
        """Let a version serve; one that the gate rejected only by force."""
        version = self.versions.get(number)
        if version.promoted_at is None and not force:
            raise Conflict(
                f"The gate rejected {version.name}: {_why(version)} To promote it all the same, say force and why."
            )
        return self._let_serve(version, who=who, reason=reason)

    def roll_back(self, *, who: str, reason: str) -> Version:
        """Let the version serve that the champion was learned from."""
        champion = self.versions.champion()
        if champion is None or champion.parent is None:
            raise Conflict("There is no earlier version to go back to.")
        return self._let_serve(self.versions.get(champion.parent), who=who, reason=reason)

    def _let_serve(self, version: Version, *, who: str, reason: str) -> Version:
        if not reason.strip():
            raise InputRejected("Say why; the reason is kept with the change.")
        self.versions.promote(version, at=self.clock.now(), who=who, reason=reason)
        return self.versions.get(version.number)


def _why(version: Version) -> str:
    reasons = version.report.get("verdict", {}).get("reasons", [])
    return " ".join(reasons) or "it gave no reason."
