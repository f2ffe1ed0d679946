"""The filter of the alarms page: site, machine, shift and period; every choice is put into the URL at once."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import date, timedelta

from nicegui import html
from nicegui.element import Element
from nicegui.events import GenericEventArguments

from service.page.alarms.view import CUSTOM, DEFAULT_SPAN, SPANS, View, read_day
from service.page.components.blocks import machine_title
from service.page.components.forms import select
from service.page.components.refreshable import Refreshable
from service.page.texts import text
from wire.enums import AlarmMetricsGrouping
from wire.rest.alarm_metrics import ShiftView
from wire.rest.machines import MachineView

_EMIT_VALUE = "(event) => emit(event.target.value)"


class Controls:
    """Draws the filter and calls ``on_change`` with every new view; a changed field keeps the focus."""

    def __init__(
        self,
        view: View,
        machines: list[MachineView],
        shifts: list[ShiftView],
        *,
        today: date,
        on_change: Callable[[View], Awaitable[None]],
    ) -> None:
        self._view, self._all, self._today, self._on_change = view, machines, today, on_change
        sites = sorted({one.site for one in machines} | ({view.site} if view.site else set()))
        site_options = [("", text("alarms.filter.all_sites")), *((one, one) for one in sites)]
        shift_options = [("", text("alarms.filter.all_shifts"))]
        shift_options += [
            (one.shift, text("alarms.filter.shift_from", shift=shift_name(one.shift), start=one.start))
            for one in shifts
        ]
        spans = [
            ("24h", text("alarms.period.24h")),
            ("7d", text("alarms.period.7d")),
            ("30d", text("alarms.period.30d")),
            (CUSTOM, text("alarms.period.custom")),
        ]
        label = {"aria-label": text("alarms.filter.label")}
        self._place = html.div(role="search", **label).classes("ac-tools")
        with self._place:
            self._site_field = self._choice(
                "site", text("alarms.filter.site"), site_options, view.site, self._with_site
            )
            self._machines = Refreshable(self._draw_machines, style="ac-inline")
            self._choice(
                "shift",
                text("alarms.filter.shift"),
                shift_options,
                view.shift,
                lambda to: replace(self._view, shift=to),
            )
            self._choice("span", text("alarms.filter.period"), spans, view.span, self._with_span)
            self._days = Refreshable(self._draw_days, style="ac-inline")
        self._refresh()

    async def change(self, view: View) -> None:
        """Show another view and report it."""
        self._view = view
        with self._place:  # the slot of the event may be deleted by the refresh
            self._refresh()
            await self._on_change(view)

    async def group_by(self, by: AlarmMetricsGrouping) -> None:
        """Change the grouping of the current view."""
        await self.change(replace(self._view, by=by))

    def _refresh(self) -> None:
        _set(self._site_field, self._view.site)  # choosing a machine sets its site
        self._machines.show(self._view.site)
        self._days.show(self._view.span == CUSTOM)

    def _draw_machines(self, _site: str) -> None:
        view = self._view
        at_site = [one for one in self._all if view.site in ("", one.site)]
        names = {f"{one.site}/{one.machine}": machine_title(one) for one in at_site}
        machine = f"{view.site}/{view.machine}" if view.machine else ""
        if machine:
            names.setdefault(machine, machine)  # a retired machine can still be shown
        options = [("", text("alarms.filter.all_machines")), *sorted(names.items(), key=lambda one: one[1])]
        self._choice("machine", text("alarms.filter.machine"), options, machine, self._with_machine)

    def _draw_days(self, custom: bool) -> None:  # noqa: FBT001 - what is shown
        if custom:
            view = self._view
            self._day("from", text("alarms.filter.from"), view.first, lambda to: replace(self._view, first=to))
            self._day("to", text("alarms.filter.to"), view.last, lambda to: replace(self._view, last=to))

    def _with_site(self, to: str) -> View:
        return replace(self._view, site=to, machine="")

    def _with_machine(self, to: str) -> View:
        site, _, machine = to.partition("/")
        return replace(self._view, site=site or self._view.site, machine=machine)

    def _with_span(self, to: str) -> View:
        if to != CUSTOM:
            return replace(self._view, span=to)
        # A custom range starts with the period that was shown before.
        before = SPANS.get(self._view.span, SPANS[DEFAULT_SPAN]) - timedelta(days=1)
        return replace(self._view, span=CUSTOM, first=self._today - before, last=self._today)

    def _choice(
        self, name: str, title: str, options: list[tuple[str, str]], chosen: str, change: Callable[[str], View]
    ) -> Element:
        with html.label():
            html.span(title)
            field = select(name, options)
            self._bind(field, chosen, change)
        return field

    def _day(self, name: str, title: str, day: date | None, change: Callable[[date], View]) -> None:
        with html.label():
            html.span(title)
            field = html.input_(type="date", name=name, required=True)
            self._bind(field, str(day or ""), lambda to: change(typed) if (typed := read_day(to)) else self._view)

    def _bind(self, field: Element, value: str, change: Callable[[str], View]) -> None:
        async def changed(event: GenericEventArguments) -> None:
            _set(field, str(event.args))
            await self.change(change(str(event.args)))

        _set(field, value)
        field.on("change", changed, js_handler=_EMIT_VALUE)


def shift_name(shift: str) -> str:
    """Return the name of a shift; the default shifts have a text, others are shown as configured."""
    names = {
        "early": text("alarms.shift.early"),
        "late": text("alarms.shift.late"),
        "night": text("alarms.shift.night"),
    }
    return names.get(shift, shift)


def _set(field: Element, value: str) -> None:
    """Set the value on the server too; otherwise the next update would reset the field in the browser."""
    if field.props.get("value") != value:
        field.props["value"] = value
        field.update()
