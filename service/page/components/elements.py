"""Browser components, each with its JavaScript file of the same name."""

from pathlib import Path
from typing import Any

from nicegui import ui
from nicegui.elements.echart import EChart

from wire.rest.auth import Me

_FORMAT = {"alarmcast-format": str(Path(__file__).parent.parent / "format")}


class FleetBoard(ui.element, component="fleet_board.js", esm=_FORMAT):
    """Every machine as a card; sorts, filters and searches in the browser."""

    def __init__(self, *, may_enrol: bool) -> None:
        super().__init__()
        self._props["may_enrol"] = may_enrol

    def load(self, overview: dict[str, Any]) -> None:
        """Show a fleet overview of the API, complete or changes only."""
        self.run_method("load", overview)


class ThemeSwitch(ui.element, component="theme_switch.js", esm=_FORMAT):
    """Light, dark, or as the device is set."""


class UserMenu(ui.element, component="user_menu.js", esm=_FORMAT):
    """The signed-in user and how to sign out."""

    def __init__(self, me: Me) -> None:
        super().__init__()
        self._props.update({"name": me.name, "role": me.role.value, "sites": me.sites})


class PlantClock(ui.element, component="plant_clock.js", esm=_FORMAT):
    """The plant time, and a warning when updates no longer arrive."""

    def show(self, plant_time: str, zone: str) -> None:
        """Show a moment in a time zone."""
        self.run_method("show", plant_time, zone)


class Chart(ui.element, component="chart.js", esm=_FORMAT):
    """An ECharts chart in the colours of the page; ``label`` describes it for screen readers.

    Options are data: colours may be ``var(--ink)``, formatters ``@percent``, ``@plantTime``, ``@plantAxis``,
    ``@plantDay``, ``@number``, ``@ago`` and ``@agoTip`` for minutes before now, or ``@tip``, which shows a point's
    own ``tip`` and ``at``.
    """

    needs = EChart  # chart.js imports its module

    def __init__(self, options: dict[str, Any], *, label: str, zone: str = "UTC") -> None:
        super().__init__()
        self._props["options"] = options
        self._props["label"] = label
        self._props["zone"] = zone
        self._update_method = "update_chart"

    def show(self, options: dict[str, Any], *, label: str | None = None, zone: str | None = None) -> None:
        """Draw these options instead; the reader's zoom stays."""
        self._props["options"] = options
        if zone is not None:
            self._props["zone"] = zone
        if label is not None:
            self._props["label"] = label
        self.update()
