"""The machine page's parts that live in the browser, each beside its JavaScript."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nicegui import ui

_FORMAT = {"alarmcast-format": str(Path(__file__).parent.parent / "format")}


class Loaded(ui.element):
    """A part that shows what it is told and keeps what the reader has set; says ``ready`` once it can be told."""

    def load(self, told: Mapping[str, Any]) -> None:
        """Show this; what is not named stays as it is."""
        self.run_method("load", dict(told))


class MachineHead(Loaded, component="head.js", esm=_FORMAT):
    """Who the machine is and how it is: told ``machine``, ``card``, ``forecast``, ``now``."""


class ForecastBars(Loaded, component="forecast.js", esm=_FORMAT):
    """Every alarm that is forecast: told ``forecast``, ``chosen``, ``shelves``; says ``chosen`` with a code."""


class WhyBars(Loaded, component="why.js", esm=_FORMAT):
    """The parts of one alarm's forecast: told ``reason`` and what it rests on."""


class Deeds(Loaded, component="actions.js", esm=_FORMAT):
    """What may be done about an alarm; says ``acknowledge``, ``shelve`` and ``unshelve``, and awaits an answer."""

    def done(self) -> None:
        """Close the dialog: what was asked for is done."""
        self.run_method("done")

    def refuse(self, detail: str) -> None:
        """Say in the open dialog why it was not done."""
        self.run_method("refuse", detail)


class PastGrid(Loaded, component="past.js", esm=_FORMAT):
    """Past forecasts beside what happened: told ``moments`` and ``next``; says ``older`` with a cursor."""
