"""Elements that live in the browser, each beside its JavaScript of the same name."""

from pathlib import Path
from typing import Any

from nicegui import ui
from nicegui.elements.echart import EChart

from wire.rest.auth import Me

_FORMAT = {"alarmcast-format": str(Path(__file__).parent.parent / "format")}


class FleetBoard(ui.element, component="fleet_board.js", esm=_FORMAT):
    """Every machine as a card; sorts, filters and searches by itself."""

    def __init__(self, *, may_enrol: bool) -> None:
        super().__init__()
        self._props["may_enrol"] = may_enrol

    def load(self, overview: dict[str, Any]) -> None:
        """Show a fleet overview as the API gives it, whole or only what changed."""
        self.run_method("load", overview)


class ThemeSwitch(ui.element, component="theme_switch.js"):
    """Light, dark, or as the device says."""


class Visitor(ui.element, component="visitor.js"):
    """Who is signed in, and the way out."""

    def __init__(self, me: Me) -> None:
        super().__init__()
        self._props.update({"name": me.name, "role": me.role.value, "sites": me.sites})


class PlantClock(ui.element, component="plant_clock.js", esm=_FORMAT):
    """What time it is in the plant, what serves, and whether this page is still told."""

    def tell(self, overview: dict[str, Any], zone: str) -> None:
        """Show what a fleet overview says of them, in a time zone."""
        self.run_method(
            "tell", {name: overview[name] for name in ("plant_time", "model_version")} | {"zone": zone}
        )


class Chart(ui.element, component="chart.js", esm=_FORMAT):
    """An ECharts chart in the page's colours; ``label`` says in a sentence what it shows.

    Options are data: colours may be ``var(--ink)``, formatters ``@percent``, ``@plantTime``, ``@plantAxis``,
    ``@plantDay``, ``@number``, ``@ago`` and ``@agoTip`` for minutes before now, or ``@tip``, which shows a point's
    own ``tip`` and ``at``.
    """

    needs = EChart  # its module is what the browser half imports

    def __init__(self, options: dict[str, Any], *, label: str, zone: str = "UTC") -> None:
        super().__init__()
        self._props["options"] = options
        self._props["label"] = label
        self._props["zone"] = zone
        self._update_method = "update_chart"

    def show(self, options: dict[str, Any], *, label: str | None = None, zone: str | None = None) -> None:
        """Draw these options instead; zoom stays as the reader has set it."""
        self._props["options"] = options
        if zone is not None:
            self._props["zone"] = zone
        if label is not None:
            self._props["label"] = label
        self.update()
