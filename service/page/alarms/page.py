"""The alarms page: choose whose alarms of when, and see how many, which, and what stands out."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from nicegui import html, ui

from alarmcast import AlarmcastError, Rejected
from service.page.alarms.controls import Controls
from service.page.alarms.metrics_panels import MetricsPanels
from service.page.alarms.suppression_panel import SuppressionPanel
from service.page.alarms.view import AlarmsQuery, View
from service.page.components.blocks import empty_state
from service.page.components.refreshable import Refreshable
from service.page.layout import PageContext, layout, show_api_errors
from wire.rest.alarm_metrics import AlarmMetricsReport, ShiftView
from wire.rest.machines import MachineView
from wire.zones import common_zone

_RENEWED, _KEPT = 15.0, 10.0  # seconds


async def alarms(told: PageContext, query: Mapping[str, str]) -> None:
    """Draw the page as its address says."""
    with layout(told, "Alarms", path="/alarms", look="alarms"):
        with html.div().classes("ac-head"):
            html.h1("Which alarms came, and how many")
            html.span("against the bands of ISA-18.2, in plant time").classes("quiet")
        place = html.div().classes("ac-sheet")
        with place:
            html.p("Counting …", role="status").classes("quiet")

    async def fill() -> None:
        with show_api_errors(), place:
            machines = (await told.client.machines.list()).machines
            place.clear()
            if machines:
                await _Page(told, View.of(query), machines).draw()
            else:
                _nobody()

    # A long span of a large fleet takes its time, and the page is there before.
    ui.timer(0.0, fill, once=True)


def _nobody() -> None:
    empty_state(
        "No machines yet",
        "Enrol the first on the Learning page, or run the demo; its alarms are counted here from then on.",
        code="alarmcast demo",
    )


class _Page:
    """One open page: the view that is chosen, and what is drawn of it."""

    def __init__(self, told: PageContext, view: View, machines: list[MachineView]) -> None:
        self._told, self._view, self._machines = told, view, machines
        self._sheet: MetricsPanels | None = None

    async def draw(self) -> None:
        """Draw everything, and keep it up to date."""
        now = await self._now()
        shifts = await self._told.kept.get_or_fetch("shifts", self._shifts, seconds=600)
        today = now.astimezone(ZoneInfo(self._zone(self._view))).date()
        controls = Controls(self._view, self._machines, shifts, today=today, chosen=self._choose)
        self._complaint = Refreshable(_complain)
        self._place = html.div().classes("ac-sheet")
        self._controls = controls
        await self.renew()
        quiet = SuppressionPanel(self._told, self._machines)
        await quiet.renew()
        ui.timer(_RENEWED, self.renew, immediate=False)
        ui.timer(_RENEWED, quiet.renew, immediate=False)

    async def renew(self) -> None:
        """Ask again and show what is different; what cannot be asked is said instead."""
        view = self._view
        question = view.question(await self._now(), self._zone(view))
        try:
            found = await self._told.kept.get_or_fetch(
                ("figures", view), lambda: self._ask(question), seconds=_KEPT
            )
        except AlarmcastError as error:
            self._complaint.show(_words(error))
            self._place.set_visibility(False)
            return
        if view != self._view:
            return  # somebody has chosen something else meanwhile
        self._complaint.show("")
        self._place.set_visibility(True)
        if self._sheet is None:
            with self._place:
                self._sheet = MetricsPanels(self._machines, self._controls.count_by)
        self._sheet.show(question, found)

    async def _choose(self, view: View) -> None:
        self._view = view
        self._counting(busy=True)  # until the answer is there, what is shown is of an earlier choice
        ui.navigate.history.replace(view.address)
        try:
            await self.renew()
        finally:
            if view == self._view:
                self._counting(busy=False)

    def _counting(self, *, busy: bool) -> None:
        self._place.props["aria-busy"] = "true" if busy else "false"
        self._place.update()

    async def _ask(self, question: AlarmsQuery) -> AlarmMetricsReport:
        view = question.view
        return await self._told.client.alarm_metrics.get(
            by=view.by,
            site=view.site or None,
            machine=view.machine or None,
            shift=view.shift or None,
            since=question.since,
            until=question.until,
        )

    async def _shifts(self) -> list[ShiftView]:
        """Return the shifts there are, from figures of a span that costs nothing."""
        now = await self._now()
        return (await self._told.client.alarm_metrics.get(since=now - timedelta(minutes=1), until=now)).shifts

    async def _now(self) -> datetime:
        return datetime.fromisoformat((await self._told.live.snapshot())["plant_time"])

    def _zone(self, view: View) -> str:
        """Return the time zone of most machines of a view."""
        return common_zone(
            one.time_zone
            for one in self._machines
            if view.site in ("", one.site) and view.machine in ("", one.machine)
        )


def _words(error: AlarmcastError) -> str:
    if isinstance(error, Rejected) and "since" in str(error):
        return "The first day must not be after the last, and not after today."
    return str(error)


def _complain(sentence: str) -> None:
    if sentence:
        html.p(f"{sentence} Choose something else above.", role="alert").classes("ac-warn")
