"""Browser components of the machine page, each with its JavaScript file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nicegui import ui

_FORMAT = {"alarmcast-format": str(Path(__file__).parent.parent / "format")}


class _Component(ui.element):
    """A component that shows data and keeps what the reader has set."""

    def load(self, data: Mapping[str, Any]) -> None:
        """Show data; fields that are not named stay as they are."""
        self.run_method("load", dict(data))


class MachineHead(_Component, component="head.js", esm=_FORMAT):
    """Name and status; loads ``machine``, ``card``, ``forecast``, ``now``; emits ``ready``."""


class ForecastList(_Component, component="forecast.js", esm=_FORMAT):
    """All forecast alarms; loads ``forecast``, ``selected``, ``shelves``; emits ``selected`` with a code."""


class FactorList(_Component, component="explanation.js", esm=_FORMAT):
    """The contributing factors of one alarm; loads ``alarm`` and the basis of its explanation."""


class AlarmActions(_Component, component="actions.js", esm=_FORMAT):
    """Emits ``acknowledge``, ``shelve``, ``unshelve``; then waits for ``done`` or ``refuse``."""

    def done(self) -> None:
        """Close the dialog."""
        self.run_method("done")

    def refuse(self, detail: str) -> None:
        """Show in the open dialog why the action failed."""
        self.run_method("refuse", detail)


class ResponseView(_Component, component="response.js", esm=_FORMAT):
    """What to do about an alarm and its answers; emits ``answer``, then waits for ``done`` or ``refuse``."""

    def done(self) -> None:
        """Empty the note."""
        self.run_method("done")

    def refuse(self, detail: str) -> None:
        """Show why the answer was not stored."""
        self.run_method("refuse", detail)


class ForecastGrid(_Component, component="history.js", esm=_FORMAT):
    """Past forecasts and what occurred; loads ``forecasts``, ``next``; emits ``older``."""
