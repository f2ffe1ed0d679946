"""All figures of a view: drawn once, renewed in place."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from nicegui import html
from nicegui.element import Element

from service.page.alarms import tables
from service.page.alarms.rate import BANDS, Rate
from service.page.alarms.view import LINES, AlarmsQuery
from service.page.components.blocks import NOTHING, machine_title, number, panel, percent, stats, timestamp
from service.page.components.data_table import Column, DataTable, Row
from service.page.components.refreshable import Refreshable
from wire.enums import AlarmMetricsGrouping
from wire.rest.alarm_metrics import AlarmMetricsReport
from wire.rest.machines import MachineView

_TITLES = {
    AlarmMetricsGrouping.SITE: "site",
    AlarmMetricsGrouping.MACHINE: "machine",
    AlarmMetricsGrouping.SHIFT: "shift",
    AlarmMetricsGrouping.DAY: "day",
    AlarmMetricsGrouping.HOUR: "hour of the day",
}


class _Words(NamedTuple):
    """What a list is called, how to read it, where it is as CSV, and what is said if it is empty."""

    title: str
    reading: str
    csv: str
    nothing: str


_TOP = _Words(
    "Ten commonest alarms",
    "A few codes usually make most of the alarms; the column together says how many would be gone if this one and "
    "all above it were mended.",
    "/v1/alarm-metrics/top.csv",
    "No alarm in this time.",
)
_FLOODS = _Words(
    "Floods",
    "More than 10 alarms of one machine within ten minutes are more than a person can take in. A flood is over "
    "once fewer than 5 came in ten minutes.",
    "/v1/alarm-metrics/floods.csv",
    "No flood in this time.",
)
_CHATTER = _Words(
    "Chattering alarms",
    "A code that comes three times or more within a minute: often a sensor at its limit or a loose contact, and "
    "quickly mended.",
    "/v1/alarm-metrics/chatter.csv",
    "Nothing chattered in this time.",
)
_STANDING = _Words(
    "Standing alarms",
    "A code raised again and again for more than 24 hours without a pause of more than an hour. Machines do not "
    "tell when an alarm clears, so one that is raised once and stays is not seen.",
    "/v1/alarm-metrics/standing.csv",
    "No alarm stood for a day.",
)


class MetricsPanels:
    """The panels of the page; ``choose`` changes what the lines are by."""

    def __init__(
        self, machines: list[MachineView], choose: Callable[[AlarmMetricsGrouping], Awaitable[None]]
    ) -> None:
        self._names = {f"{one.site}/{one.machine}": machine_title(one) for one in machines}
        self._zones = {f"{one.site}/{one.machine}": one.time_zone for one in machines}
        self._choose = choose
        self._span = Refreshable(_span)
        self._figures = Refreshable(_figures)
        with panel("Alarm rate", note="alarms a day and machine", wide=True):
            self._rate = Rate()
        with html.div().classes("ac-pair"):
            with html.div().classes("ac-column"):
                self._top = _Listed(_TOP, tables.TOP)
                self._chatter = _Listed(_CHATTER, tables.CHATTER)
            with html.div().classes("ac-column"):
                self._floods = _Listed(_FLOODS, tables.FLOODS)
                self._standing = _Listed(_STANDING, tables.STANDING)
        with panel("Line by line", wide=True):
            with html.div().classes("ac-tools"):
                self._tabs = Refreshable(self._draw_tabs, style="ac-tabs")
                self._lines_csv = _csv_link()
                self._all_csv = _csv_link("Every alarm as CSV")
            self._lines = Refreshable(self._draw_lines)

    def show(self, question: AlarmsQuery, found: AlarmMetricsReport) -> None:
        """Show these figures."""
        self._span.show(found)
        self._figures.show(found)
        self._rate.show(found)
        self._top.show(tables.top(found), question)
        self._floods.show(tables.floods(found, self._names, self._zones), question, found.counts.floods)
        self._chatter.show(tables.chatter(found, self._names, self._zones), question, found.counts.chatter)
        self._standing.show(tables.standing(found, self._names, self._zones), question, found.counts.standing)
        self._tabs.show(found.by)
        self._lines.show(found.by)
        self._table.show(tables.lines(found, self._names))
        _lead(self._lines_csv, question.csv("/v1/alarm-metrics/rows.csv", lines=True))
        _lead(self._all_csv, question.csv("/v1/alarms.csv"))

    def _draw_tabs(self, chosen: AlarmMetricsGrouping) -> None:
        html.span("by").classes("quiet small")
        for one in LINES:
            pressed = "true" if one is chosen else "false"
            button = html.button(_TITLES[one], type="button", **{"aria-pressed": pressed}).classes(
                "ac-button ac-small"
            )
            button.on("click", lambda one=one: self._choose(one))

    def _draw_lines(self, by: AlarmMetricsGrouping) -> None:
        columns = [Column(_TITLES[by]), *tables.LINE_FIGURES]
        self._table = DataTable(columns, [], label=f"Figures by {_TITLES[by]}", first=31)


class _Listed:
    """A panel with a list: how to read it, its rows, and the same as CSV."""

    def __init__(self, words: _Words, columns: list[Column]) -> None:
        self._words = words
        with panel(words.title):
            html.p(words.reading).classes("quiet small")
            self._calm = Refreshable(_calm)
            self._table = DataTable(columns, [], label=words.title, first=10)
            with html.div().classes("ac-tools"):
                self._csv = _csv_link()
                self._count = Refreshable(_note)

    def show(self, rows: list[Row], question: AlarmsQuery, count: int | None = None) -> None:
        """Show these rows of ``count`` that there are."""
        self._calm.show("" if rows else self._words.nothing)
        self._table.set_visibility(bool(rows))
        self._table.show(rows)
        more = count is not None and count > len(rows)
        self._count.show(f"{len(rows)} of {count:,}; all are in the CSV" if more else "")
        _lead(self._csv, question.csv(self._words.csv))
        self._csv.set_visibility(bool(rows))


def _csv_link(text: str = "CSV") -> Element:
    link: Element = html.a(text, href="#", download="").classes("ac-button ac-small")
    return link


def _lead(link: Element, address: str) -> None:
    if link.props.get("href") != address:
        link.props["href"] = address
        link.update()


def _note(text: str) -> None:
    html.span(text).classes("quiet small")


def _calm(sentence: str) -> None:
    if sentence:
        html.p(sentence).classes("ac-calm")


def _span(found: AlarmMetricsReport) -> None:
    zone = found.rate.time_zone
    with html.p().classes("quiet small"):
        timestamp(found.since, zone)
        html.span(" to ")
        timestamp(found.until, zone)
        many = "1 machine" if found.machines == 1 else f"{found.machines} machines"
        html.span(f", {many}, {found.total.machine_days:,.1f} days of one machine watched")


def _figures(found: AlarmMetricsReport) -> None:
    total = found.total
    share = sum(one.share for one in found.top) if found.top else None
    notes = {"in floods": f"{total.flood_share:.1%} of the time".replace("%", " %") if total.flood_share else ""}
    if total.band is not None:
        notes["a day and machine"] = f"{BANDS[total.band][0]} {total.band.value}"
    if found.excluded:
        notes["alarms"] = f"{found.excluded:,} shelved ones are left out"
    stats(
        {
            "alarms": f"{total.alarms:,}",
            "a day and machine": number(total.alarms_per_day, 1),
            "ten commonest make": NOTHING if share is None else percent(share),
            "floods": total.floods,
            "in floods": f"{total.alarms_in_floods:,}",
            "most in 10 min": total.peak_10min,
            "chattering": f"{total.chattering:,}",
            "standing": total.standing,
        },
        {name: note for name, note in notes.items() if note},
    )
