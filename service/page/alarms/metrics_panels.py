"""The panels of alarm figures: drawn once, refreshed in place."""

from collections.abc import Awaitable, Callable
from typing import Any

from nicegui import html
from nicegui.element import Element

from service.page.alarms import tables
from service.page.alarms.rate import BANDS, RateChart, band_name
from service.page.alarms.view import GROUPINGS, AlarmsQuery
from service.page.components.blocks import (
    NOTHING,
    machine_title,
    number,
    panel,
    percent,
    stats,
    timestamp,
)
from service.page.components.data_table import Column, DataTable, Row
from service.page.components.refreshable import Refreshable
from service.page.texts import text
from wire.enums import AlarmMetricsGrouping
from wire.rest.alarm_metrics import AlarmMetricsReport
from wire.rest.machines import MachineView


class MetricsPanels:
    """All panels; ``group_by`` is called when another grouping of the breakdown is chosen."""

    def __init__(
        self, machines: list[MachineView], group_by: Callable[[AlarmMetricsGrouping], Awaitable[None]]
    ) -> None:
        self._names = {f"{one.site}/{one.machine}": machine_title(one) for one in machines}
        self._zones = {f"{one.site}/{one.machine}": one.time_zone for one in machines}
        self._group_by = group_by
        self._span = Refreshable(_span)
        self._stats = Refreshable(_stats)
        with panel(text("alarms.rate.title"), note=text("alarms.rate.note"), wide=True):
            self._rate = RateChart()
        with html.div().classes("ac-pair"):
            with html.div().classes("ac-column"):
                self._top = _ListPanel(
                    text("alarms.top.title"),
                    text("alarms.top.help"),
                    text("alarms.top.empty"),
                    tables.top_columns(),
                )
                self._durations = _ListPanel(
                    text("alarms.durations.title"),
                    text("alarms.durations.help"),
                    text("alarms.durations.empty"),
                    tables.duration_columns(),
                )
                self._chatter = _ListPanel(
                    text("alarms.chatter.title"),
                    text("alarms.chatter.help"),
                    text("alarms.chatter.empty"),
                    tables.chatter_columns(),
                )
            with html.div().classes("ac-column"):
                self._floods = _ListPanel(
                    text("alarms.floods.title"),
                    text("alarms.floods.help"),
                    text("alarms.floods.empty"),
                    tables.flood_columns(),
                )
                self._stale = _ListPanel(
                    text("alarms.stale.title"),
                    text("alarms.stale.help"),
                    text("alarms.stale.empty"),
                    tables.stale_columns(),
                )
                self._active = _ListPanel(
                    text("alarms.active.title"),
                    text("alarms.active.help"),
                    text("alarms.active.empty"),
                    tables.active_columns(),
                )
        with panel(text("alarms.breakdown.title"), wide=True):
            with html.div().classes("ac-tools"):
                self._tabs = Refreshable(self._draw_tabs, style="ac-tabs")
                self._rows_csv = _csv_link(text("alarms.csv"))
                self._all_csv = _csv_link(text("alarms.csv_all"))
            self._breakdown = Refreshable(self._draw_breakdown)

    def show(self, query: AlarmsQuery, report: AlarmMetricsReport) -> None:
        """Show the figures of a report."""
        names, zones, counts = self._names, self._zones, report.counts
        self._span.show(report)
        self._stats.show(report)
        self._rate.show(report)
        self._top.show(tables.top_rows(report), query.csv("/v1/alarm-metrics/top.csv"))
        self._durations.show(tables.duration_rows(report), query.csv("/v1/alarm-metrics/top.csv"))
        self._floods.show(
            tables.flood_rows(report, names, zones), query.csv("/v1/alarm-metrics/floods.csv"), counts.floods
        )
        self._chatter.show(
            tables.chatter_rows(report, names, zones), query.csv("/v1/alarm-metrics/chatter.csv"), counts.chatter
        )
        self._stale.show(
            tables.stale_rows(report, names, zones),
            query.csv(f"/v1/alarm-metrics/{'stale' if report.stale else 'standing'}.csv"),
            counts.standing + counts.stale,
        )
        self._active.show(
            tables.active_rows(report, names, zones), query.csv("/v1/alarm-metrics/active.csv"), counts.active
        )
        self._tabs.show(report.by)
        self._breakdown.show(report.by)
        self._table.show(tables.breakdown_rows(report, names))
        _set_href(self._rows_csv, query.csv("/v1/alarm-metrics/rows.csv", grouped=True))
        _set_href(self._all_csv, query.csv("/v1/alarms.csv"))

    def _draw_tabs(self, chosen: AlarmMetricsGrouping) -> None:
        html.span(text("alarms.breakdown.by")).classes("quiet small")
        for one in GROUPINGS:
            pressed = {"aria-pressed": "true" if one is chosen else "false"}
            button = html.button(_group_name(one), type="button", **pressed).classes("ac-button ac-small")
            button.on("click", lambda one=one: self._group_by(one))

    def _draw_breakdown(self, by: AlarmMetricsGrouping) -> None:
        columns = [Column(_group_name(by)), *tables.breakdown_columns()]
        self._table = DataTable(columns, label=text("alarms.breakdown.label", group=_group_name(by)), first=31)


class _ListPanel:
    """A panel with a help text, a table, and the same rows as CSV."""

    def __init__(self, title: str, help_text: str, empty: str, columns: list[Column]) -> None:
        self._empty_text = empty
        with panel(title):
            html.p(help_text).classes("quiet small")
            self._table = DataTable(columns, label=title, first=10)
            with html.div().classes("ac-tools"):
                self._csv = _csv_link(text("alarms.csv"))
                self._more = Refreshable(_note)

    def show(self, rows: list[Row], csv: str, count: int = 0) -> None:
        """Show these rows of ``count`` that exist."""
        self._table.show(rows, empty=self._empty_text)
        self._more.show(text("alarms.csv_more", shown=len(rows), count=count) if count > len(rows) else "")
        _set_href(self._csv, csv)
        self._csv.set_visibility(bool(rows))


def _group_name(by: AlarmMetricsGrouping) -> str:
    return {
        AlarmMetricsGrouping.SITE: text("alarms.group.site"),
        AlarmMetricsGrouping.MACHINE: text("alarms.group.machine"),
        AlarmMetricsGrouping.SHIFT: text("alarms.group.shift"),
        AlarmMetricsGrouping.DAY: text("alarms.group.day"),
        AlarmMetricsGrouping.HOUR: text("alarms.group.hour"),
    }[by]


def _csv_link(title: str) -> Element:
    link: Element = html.a(title, href="#", download="").classes("ac-button ac-small")
    return link


def _set_href(link: Element, address: str) -> None:
    if link.props.get("href") != address:
        link.props["href"] = address
        link.update()


def _note(note: str) -> None:
    html.span(note).classes("quiet small")


def _span(report: AlarmMetricsReport) -> None:
    zone = report.rate.time_zone
    with html.p().classes("quiet small"):
        timestamp(report.since, zone)
        html.span(text("alarms.span.to"))
        timestamp(report.until, zone)
        html.span(text("alarms.span.machines", count=report.machines, days=report.total.machine_days))


def _downtime(seconds: float | None) -> dict[str, Any]:
    if seconds is None:
        return {}
    return {text("alarms.stat.downtime"): text("alarms.hours_of", hours=f"{seconds / 3600:,.1f}")}


def _stats(report: AlarmMetricsReport) -> None:
    total = report.total
    flood_time = (
        text("alarms.stat.flood_time", share=f"{100 * total.flood_share:.1f} %") if total.flood_share else ""
    )
    tags = text("alarms.stat.chattering_tags", count=report.counts.chatter) if total.chattering else ""
    stats(
        {
            text("alarms.stat.alarms"): (
                f"{total.alarms:,}",
                text("alarms.stat.excluded", count=report.excluded) if report.excluded else "",
            ),
            text("alarms.stat.per_day"): (
                number(total.alarms_per_day, 1),
                f"{BANDS[total.band].sign} {band_name(total.band)}" if total.band is not None else "",
            ),
            text("alarms.stat.top_share"): percent(sum(one.share for one in report.top))
            if report.top
            else NOTHING,
            text("alarms.stat.floods"): total.floods,
            text("alarms.stat.in_floods"): (f"{total.alarms_in_floods:,}", flood_time),
            text("alarms.stat.peak"): total.peak_10min,
            text("alarms.stat.chattering"): (f"{total.chattering:,}", tags),
            text("alarms.stat.stale"): total.standing + (total.stale or 0),
            **({} if total.active is None else {text("alarms.stat.active"): total.active}),
            **_downtime(total.downtime_seconds),
        }
    )
