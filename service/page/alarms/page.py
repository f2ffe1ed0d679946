"""The alarms page: a filter, the alarm figures of the selection, and what is suppressed now."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from nicegui import html, ui

from alarmcast import AlarmcastError, Rejected
from service.page.alarms.catalogue_panel import CataloguePanel
from service.page.alarms.controls import Controls
from service.page.alarms.metrics_panels import MetricsPanels
from service.page.alarms.suppression_panel import SuppressionPanel
from service.page.alarms.view import AlarmsQuery, View
from service.page.changes import Topic
from service.page.components.blocks import empty_state
from service.page.components.refreshable import Refreshable
from service.page.layout import PageContext, layout, show_api_errors
from service.page.texts import text
from wire.rest.alarm_metrics import AlarmMetricsReport, ShiftView
from wire.rest.machines import MachineView
from wire.zones import common_zone

_PAUSE_S, _CACHE_S = 15.0, 10.0  # seconds; the figures of a large fleet take some time


async def alarms(context: PageContext, query: Mapping[str, str]) -> None:
    """Draw the page for the query of its URL."""
    with layout(context, text("alarms.title"), path="/alarms", stylesheet="alarms"):
        with html.div().classes("ac-head"):
            html.h1(text("alarms.heading"))
        place = html.div().classes("ac-metrics")
        with place:
            html.p(text("alarms.loading"), role="status").classes("quiet")

    async def fill() -> None:
        with show_api_errors(), place:
            machines = (await context.client.machines.list()).machines
            place.clear()
            if machines:
                await _AlarmsPage(context, View.of(query), machines).draw()
            else:
                empty_state(
                    text("alarms.no_machines.title"), text("alarms.no_machines.help"), code="alarmcast demo"
                )

    # The figures of a large fleet take some time; the page is shown before.
    ui.timer(0.0, fill, once=True)


class _AlarmsPage:
    """One open page and its selected view."""

    def __init__(self, context: PageContext, view: View, machines: list[MachineView]) -> None:
        self._context, self._view, self._machines = context, view, machines
        self._panels: MetricsPanels | None = None

    async def draw(self) -> None:
        """Draw everything and keep it up to date."""
        now = await self._now()
        shifts = await self._context.cache.get_or_fetch("shifts", self._shifts, seconds=600)
        today = now.astimezone(ZoneInfo(self._zone(self._view))).date()
        self._controls = Controls(self._view, self._machines, shifts, today=today, on_change=self._choose)
        self._error = Refreshable(_error)
        self._place = html.div().classes("ac-metrics")
        await self.refresh()
        suppression = SuppressionPanel(self._context, self._machines)
        await suppression.refresh()
        catalogue = CataloguePanel(self._context)
        await catalogue.refresh()
        parts = self._context.parts
        parts.add(self.refresh, Topic.EVENTS, pause_s=_PAUSE_S, interval_s=60.0, at_start=False)
        parts.add(suppression.refresh, Topic.SUPPRESSION, Topic.RESOURCES, at_start=False)
        parts.add(catalogue.refresh, Topic.RESOURCES, interval_s=60.0, at_start=False)

    async def refresh(self) -> None:
        """Fetch the figures again and show them, or the error."""
        view = self._view
        query = view.query(await self._now(), self._zone(view))
        try:
            report = await self._context.cache.get_or_fetch(
                ("figures", view), lambda: self._fetch(query), seconds=_CACHE_S
            )
        except AlarmcastError as error:
            self._error.show(_message(error))
            self._place.set_visibility(False)
            return
        if view != self._view:
            return  # another view was chosen in the meantime
        self._error.show("")
        self._place.set_visibility(True)
        if self._panels is None:
            with self._place:
                self._panels = MetricsPanels(self._machines, self._controls.group_by)
        self._panels.show(query, report)

    async def _choose(self, view: View) -> None:
        self._view = view
        self._set_busy(busy=True)  # until the answer is there, the figures are those of the previous view
        ui.navigate.history.replace(view.address)
        try:
            await self.refresh()
        finally:
            if view == self._view:
                self._set_busy(busy=False)

    def _set_busy(self, *, busy: bool) -> None:
        self._place.props["aria-busy"] = "true" if busy else "false"
        self._place.update()

    async def _fetch(self, query: AlarmsQuery) -> AlarmMetricsReport:
        view = query.view
        return await self._context.client.alarm_metrics.get(
            by=view.by,
            site=view.site or None,
            machine=view.machine or None,
            shift=view.shift or None,
            since=query.since,
            until=query.until,
        )

    async def _shifts(self) -> list[ShiftView]:
        """Return the configured shifts, from the figures of a short period."""
        now = await self._now()
        return (await self._context.client.alarm_metrics.get(since=now - timedelta(minutes=1), until=now)).shifts

    async def _now(self) -> datetime:
        return datetime.fromisoformat((await self._context.fleet.snapshot())["plant_time"])

    def _zone(self, view: View) -> str:
        """Return the most common time zone of the machines of a view."""
        return common_zone(
            one.time_zone
            for one in self._machines
            if view.site in ("", one.site) and view.machine in ("", one.machine)
        )


def _message(error: AlarmcastError) -> str:
    if isinstance(error, Rejected) and "since" in str(error):
        return text("alarms.bad_range")
    return str(error)


def _error(message: str) -> None:
    if message:
        html.p(text("alarms.change_filter", error=message), role="alert").classes("ac-warn")
