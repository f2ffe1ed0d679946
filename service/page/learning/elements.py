"""The learning page's elements that live in the browser, each beside its JavaScript of the same name."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nicegui import ui

_HERE = Path(__file__).parent
_MODULES = {"alarmcast-format": str(_HERE.parent / "format"), "alarmcast-steps": str(_HERE / "steps")}


class EnrolForm(ui.element, component="enrol_form.js", esm=_MODULES):
    """A machine from the form to live; emits ``enrol`` with the wish, ``storing`` and ``stored`` around a file."""

    def __init__(self, *, zones: Sequence[str], site: str | None, machine: str | None) -> None:
        super().__init__()
        self._props.update(zones=list(zones), site=site, machine=machine)

    def fill(self, site: str, machine: str) -> None:
        """Begin with this machine."""
        self.run_method("fill", {"site": site, "machine": machine})

    def complain(self, detail: str, errors: list[dict[str, str]]) -> None:
        """Say why the wish was refused, at the fields that ``errors`` name."""
        self.run_method("complain", {"detail": detail, "errors": errors})

    def accept(self, enrolment: dict[str, Any]) -> None:
        """Go on: the machine is enrolled."""
        self.run_method("accept", enrolment)

    def store(self, under_way: dict[str, Any]) -> None:
        """Show how far the file is stored."""
        self.run_method("store", under_way)

    def watch(self, jobs: list[dict[str, Any]]) -> None:
        """Show how far the machine's job is, if it is among these."""
        self.run_method("watch", jobs)


class JobBoard(ui.element, component="job_board.js", esm=_MODULES):
    """Jobs as they go on, and those that ended."""

    def load(self, jobs: list[dict[str, Any]]) -> None:
        """Show these jobs, newest first, each with the ``time_zone`` of its machine."""
        self.run_method("load", jobs)
