"""A version's report as people of some sites may read it."""

from collections.abc import Mapping
from typing import Any, Final

from service.http.message import ANOTHER, Sentence, is_visible, texts_for
from service.http.principal import Sites

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
