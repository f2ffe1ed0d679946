"""Composes the machine page and refreshes its panels."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nicegui import background_tasks, html, ui

from alarmcast import AlarmcastError, NotFound, Rejected
from service.page.changes import Topic
from service.page.components.blocks import machine_title
from service.page.horizon import horizon_hours
from service.page.layout import PageContext, layout
from service.page.machine.elements import MachineHead
from service.page.machine.forecast_history import ForecastHistoryPanel
from service.page.machine.forecast_panel import ForecastPanel
from service.page.machine.gaps import GapsPanel
from service.page.machine.not_found import not_found
from service.page.machine.timeline import TimelinePanel
from wire.enums import MachineState
from wire.rest.machines import MachineView


@dataclass
class _MachinePage:
    """One open page of one machine."""

    context: PageContext
    view: MachineView
    card: dict[str, Any] | None = None
    now: str | None = None
    gone: bool = False  # from the fleet; the machine itself decides whether it is retired

    def __post_init__(self) -> None:
        self.key = f"{self.view.site}/{self.view.machine}"
        scope = (self.context, self.key, self.view.time_zone)
        self.forecast, self.timeline = ForecastPanel(*scope), TimelinePanel(*scope)
        self.history, self.gaps = ForecastHistoryPanel(*scope), GapsPanel(*scope)

    def draw(self, hours: float | None) -> None:
        """Draw the head and all panels; ``hours`` is the length of a forecast."""
        title = machine_title(self.view)
        with layout(self.context, title, path="", stylesheet="machine", zone=self.view.time_zone):
            self.head = MachineHead()
            if self.view.state is MachineState.RETIRED:
                self.forecast.removed = True
            else:
                self.forecast.draw(hours)
            self.timeline.draw()
            self.history.draw()
            with html.div().classes("ac-grid"):
                self.history.draw_scores()
                self.gaps.draw()
        self._add_parts()
        self.head.on("ready", self._load)
        self.context.fleet.subscribe(self._on_fleet_change)

    def _add_parts(self) -> None:
        """Add the parts; all are refreshed when the browser is ready and when the card of the machine changes."""
        topics = (Topic.SUPPRESSION, Topic.NOTIFICATIONS, Topic.RESOURCES)
        parts = self.context.parts
        self._parts = [parts.add(self.forecast.refresh_suppression, *topics, at_start=False)]
        intervals = {
            self._refresh_forecast: (1.0, 60.0),
            self.timeline.refresh: (4.0, 60.0),
            self._refresh_head: (5.0, 15.0),
            self.gaps.refresh: (10.0, 120.0),
            self.history.refresh: (15.0, 120.0),
        }
        for refresh, (pause, interval) in intervals.items():
            self._parts.append(parts.add(refresh, pause_s=pause, interval_s=interval, at_start=False))

    def _on_fleet_change(self, overview: dict[str, Any]) -> None:
        has_changed = self._take_over(overview)
        if self.gone and not self.forecast.removed:
            self._start(self._remove_forecast)
        if has_changed and self.forecast.removed:
            ui.navigate.reload()  # the machine was enrolled again
        elif has_changed:
            self.context.parts.trigger(*self._parts)

    def _take_over(self, overview: dict[str, Any]) -> bool:
        """Take over the card and the time; return whether the card has changed."""
        own = [card for card in overview["cards"] if f"{card['site']}/{card['machine']}" == self.key]
        self.card = own[0] if own else self.card
        self.now = overview["plant_time"]
        self.timeline.now = datetime.fromisoformat(overview["plant_time"])
        # A complete overview has no list of machines that are gone.
        self.gone = (self.gone or self.key in overview["gone"] or overview["complete"]) and not own
        return bool(own)

    def _start(self, task: Callable[[], Awaitable[None]]) -> None:
        client = ui.context.client

        async def in_page() -> None:
            with client:
                await task()

        background_tasks.create(in_page(), name=f"refresh the page of {self.key}")

    async def _remove_forecast(self) -> None:
        """Show the history only, if the machine is retired."""
        try:
            self.view = await self.context.client.machines.get(self.key)
            if self.view.state is not MachineState.RETIRED or self.forecast.removed:
                return
            self.forecast.remove()
            self.card = None
            self._show_head()
            for refresh in (self.timeline.refresh, self.gaps.refresh, self.history.refresh):
                await refresh()
        except AlarmcastError:
            pass  # tried again with the next update

    async def _load(self) -> None:
        self._take_over(await self.context.fleet.snapshot())
        self._show_head()
        self.context.parts.trigger(*self._parts)

    async def _refresh_forecast(self) -> None:
        if self.view.state is not MachineState.RETIRED:
            await self.forecast.refresh()
        self._show_head()

    async def _refresh_head(self) -> None:
        self.view = await self.context.client.machines.get(self.key)
        self._show_head()

    def _show_head(self) -> None:
        forecast = self.forecast.forecast
        self.head.load(
            {
                "machine": self.view.model_dump(mode="json"),
                "card": self.card,
                "forecast": forecast and forecast.model_dump(mode="json", exclude={"alarms"}),
                "now": self.now,
            }
        )


async def machine(context: PageContext, site: str, name: str) -> bool:
    """Draw the page of a machine; return whether the machine exists."""
    try:
        view = await context.client.machines.get(f"{site}/{name}")
    except (NotFound, Rejected):
        not_found(context, f"{site}/{name}")
        return False
    _MachinePage(context, view).draw(await horizon_hours(context))
    return True
