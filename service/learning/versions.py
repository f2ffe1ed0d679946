"""Promote and roll back model versions, and restrict their reports to the sites a user may see."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from service.errors import Conflict, InputRejected
from service.forecasts.version import Version, champion_changed_error
from service.forecasts.version_store import VersionStore
from service.http.message import ANOTHER, Sentence, is_visible, texts_for
from service.http.principal import Sites
from wire.clock import PlantClock

# What names no machine. A new part of the report is for people of all sites until it is listed here or below.
_OF_ALL: Final = frozenset(
    {"summary", "code_version", "fingerprint", "windows", "codes", "forgetting", "halved", "seconds"}
)
_OF_MEMORY: Final = frozenset({"by_code", "kl_to_uniform", "offered_by_code", "kl_offered"})
_SENTENCES: Final = ("reasons", "undecided")


def report_for(report: Mapping[str, Any], sites: Sites) -> dict[str, Any]:
    """Return a stored report for people of these sites, its sentences composed for them."""
    shown = dict(report) if sites is None else {name: report[name] for name in report if name in _OF_ALL}
    if sites is not None and "memory" in report:
        memory = report["memory"]
        shown["memory"] = {name: memory[name] for name in memory if name in _OF_MEMORY}
        shown["memory"]["by_machine"] = of_sites(memory.get("by_machine", {}), sites)
    if sites is not None and "left_out" in report:
        shown["left_out"] = of_sites(report["left_out"], sites)
    if "verdict" in report:
        shown["verdict"] = _verdict(report["verdict"], sites)
    return shown


def of_sites(by_machine: Mapping[str, Any], sites: Sites) -> dict[str, Any]:
    """Return what is said of each machine of these sites."""
    return {machine: value for machine, value in by_machine.items() if is_visible(machine, sites)}


def _verdict(verdict: Mapping[str, Any], sites: Sites) -> dict[str, Any]:
    shown = dict(verdict) if sites is None else {"passed": verdict.get("passed")}
    for name in _SENTENCES:
        shown[name] = texts_for(map(Sentence.from_json, verdict.get(name, [])), sites)
    shown["figures"] = [_figure(row, sites) for row in verdict.get("figures", [])]
    return shown


def _figure(row: Mapping[str, Any], sites: Sites) -> dict[str, Any]:
    machine = row.get("machine")  # none is the mean over all
    return dict(row) if machine is None or is_visible(machine, sites) else {**row, "machine": ANOTHER}


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
