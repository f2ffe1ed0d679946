"""What a reader chooses: whose alarms, of when, of which shift; every choice is in the address at once."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import date, timedelta

from nicegui import html
from nicegui.element import Element
from nicegui.events import GenericEventArguments

from service.page.alarms.view import OWN, SPANS, USUAL_SPAN, View, read_day
from service.page.components.blocks import machine_title
from service.page.components.forms import select
from service.page.components.refreshable import Refreshable
from wire.enums import AlarmMetricsGrouping
from wire.rest.alarm_metrics import ShiftView
from wire.rest.machines import MachineView

_CHOSEN = "(event) => emit(event.target.value)"
_SPANS = [("24h", "last 24 hours"), ("7d", "last 7 days"), ("30d", "last 30 days"), (OWN, "own days")]


class Controls:
    """Draws the choices; ``chosen`` hears of every new view. A choice keeps the focus, so keys can go on."""

    def __init__(
        self,
        view: View,
        machines: list[MachineView],
        shifts: list[ShiftView],
        *,
        today: date,
        chosen: Callable[[View], Awaitable[None]],
    ) -> None:
        self._view, self._all, self._today, self._chosen = view, machines, today, chosen
        sites = sorted({one.site for one in machines} | ({view.site} if view.site else set()))
        hours = [(one.shift, f"{one.shift}, from {one.start}") for one in shifts]
        self._tools = html.div(role="search", **{"aria-label": "Which alarms"}).classes("ac-tools")
        with self._tools:
            options = [("", "all sites"), *((one, one) for one in sites)]
            self._site_field = self._choice("Site", options, view.site, self._site)
            self._machines = Refreshable(self._draw_machines, style="ac-inline")
            self._choice(
                "Shift", [("", "all shifts"), *hours], view.shift, lambda to: replace(self._view, shift=to)
            )
            self._choice("Time", _SPANS, view.span, self._span)
            self._days = Refreshable(self._draw_days, style="ac-inline")
        self._renew()

    async def change(self, view: View) -> None:
        """Show another view, and say so."""
        self._view = view
        with self._tools:  # what was pressed may be drawn anew, and is no place to stand on
            self._renew()
            await self._chosen(view)

    async def count_by(self, by: AlarmMetricsGrouping) -> None:
        """Show another kind of lines of what is chosen now, which may be newer than what is shown."""
        await self.change(replace(self._view, by=by))

    def _renew(self) -> None:
        _set(self._site_field, self._view.site)  # a machine brings its site along
        self._machines.show(self._view.site)
        self._days.show(self._view.span == OWN)

    def _draw_machines(self, _site: str) -> None:
        view = self._view
        here = [one for one in self._all if view.site in ("", one.site)]
        names = {f"{one.site}/{one.machine}": machine_title(one) for one in here}
        machine = f"{view.site}/{view.machine}" if view.machine else ""
        if machine:
            names.setdefault(machine, machine)  # one that was let go may still be looked at
        options = [("", "all machines"), *sorted(names.items(), key=lambda one: one[1])]
        self._choice("Machine", options, machine, self._machine)

    def _draw_days(self, own: bool) -> None:  # noqa: FBT001 - what is shown
        if own:
            self._day("From", self._view.first, lambda to: replace(self._view, first=to))
            self._day("To", self._view.last, lambda to: replace(self._view, last=to))

    def _site(self, to: str) -> View:
        return replace(self._view, site=to, machine="")

    def _machine(self, to: str) -> View:
        site, _, machine = to.partition("/")
        return replace(self._view, site=site or self._view.site, machine=machine)

    def _span(self, to: str) -> View:
        if to != OWN:
            return replace(self._view, span=to)
        # What was shown before is where own days begin.
        before = SPANS.get(self._view.span, SPANS[USUAL_SPAN]) - timedelta(days=1)
        return replace(self._view, span=OWN, first=self._today - before, last=self._today)

    def _choice(
        self, title: str, options: list[tuple[str, str]], chosen: str, change: Callable[[str], View]
    ) -> Element:
        with html.label():
            html.span(title)
            field = select(title.lower(), options)
            _set(field, chosen)
            self._listen(field, change)
        return field

    def _day(self, title: str, day: date | None, change: Callable[[date], View]) -> None:
        with html.label():
            html.span(title)
            field = html.input_(type="date", name=title.lower(), required=True)
            _set(field, str(day or ""))
            self._listen(field, lambda to: change(typed) if (typed := read_day(to)) else self._view)

    def _listen(self, field: Element, change: Callable[[str], View]) -> None:
        async def changed(event: GenericEventArguments) -> None:
            _set(field, str(event.args))
            await self.change(change(str(event.args)))

        field.on("change", changed, js_handler=_CHOSEN)


def _set(field: Element, value: str) -> None:
    """Let a field have its value here as in the browser, which else would go back to what it has from here."""
    if field.props.get("value") != value:
        field.props["value"] = value
        field.update()
