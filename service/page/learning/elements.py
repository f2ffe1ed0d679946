"""The browser components of the learning page, each beside its JavaScript of the same name."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nicegui import ui

_HERE = Path(__file__).parent
_MODULES = {
    "alarmcast-format": str(_HERE.parent / "format"),
    "alarmcast-history": str(_HERE / "history"),
    "alarmcast-steps": str(_HERE / "steps"),
}


class EnrolForm(ui.element, component="enrol_form.js", esm=_MODULES):
    """The enrolment form; emits ``enrol`` with its values, ``importing`` and ``imported`` around an import."""

    def __init__(self, *, zones: Sequence[str], site: str | None, machine: str | None) -> None:
        super().__init__()
        self._props.update(zones=list(zones), site=site, machine=machine)

    def fill(self, site: str, machine: str) -> None:
        """Fill in a machine."""
        self.run_method("fill", {"site": site, "machine": machine})

    def refuse(self, detail: str, errors: list[dict[str, str]]) -> None:
        """Show why the enrolment was rejected, at the fields that ``errors`` name."""
        self.run_method("refuse", {"detail": detail, "errors": errors})

    def accept(self, enrolment: dict[str, Any]) -> None:
        """Continue after the enrolment."""
        self.run_method("accept", enrolment)

    def show_import(self, progress: dict[str, Any]) -> None:
        """Show the progress of the import."""
        self.run_method("showImport", progress)

    def watch(self, jobs: list[dict[str, Any]]) -> None:
        """Show the progress of the machine's job, if it is among these."""
        self.run_method("watch", jobs)


class JobBoard(ui.element, component="job_board.js", esm=_MODULES):
    """Running and finished jobs."""

    def load(self, jobs: list[dict[str, Any]]) -> None:
        """Show these jobs, newest first, each with the ``time_zone`` of its machine."""
        self.run_method("load", jobs)
