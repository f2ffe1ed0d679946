"""A timeline as an ECharts chart: one row per code, one point per alarm, one symbol per severity."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from service.page.components.blocks import plant_time, severity_text
from service.page.machine.gaps import gap_reason
from service.page.texts import text
from wire.rest.alarm_metrics import ActiveAlarmView, FloodView
from wire.rest.gaps import GapView
from wire.rest.timelines import TimelineAlarm, TimelineView

_MAX_ROWS = 14  # codes with a row of their own; the others share one
_MAX_LABELS = 6  # more labels of bands would overlap; the legend names them too
_SYMBOLS = {"high": "triangle", "medium": "diamond", "low": "circle"}


def options(timeline: TimelineView) -> dict[str, Any]:
    """Return the options of the chart as plain data."""
    shown: list[ActiveAlarmView | TimelineAlarm] = [*timeline.earlier, *timeline.alarms]
    counts = Counter(alarm.code for alarm in shown)
    names = {alarm.code: f"{alarm.code} {alarm.text}" for alarm in shown}
    rows = {code: names[code] for code, _ in counts.most_common(_MAX_ROWS)}
    others = text("machine.timeline.others")
    labels = list(rows.values()) + ([others] if len(counts) > len(rows) else [])
    days = timeline.until - timeline.since > timedelta(days=3)

    def row(code: int) -> str:
        return rows.get(code, others)

    chatter = [
        {
            "value": [_ms(burst.start), row(burst.code)],
            "tip": text(
                "machine.timeline.chatter.tip",
                code=burst.code,
                alarm=burst.text,
                count=burst.alarms,
                end=plant_time(burst.end, timeline.time_zone),
            ),
            "at": burst.start.isoformat(),
        }
        for burst in timeline.chatter
        if burst.code in names
    ]
    return {
        "grid": {"left": 230, "right": 18, "top": 42, "bottom": 92},
        "legend": {"top": 0, "left": 0, "itemWidth": 12, "itemHeight": 12, "textStyle": {"color": "var(--soft)"}},
        "tooltip": {"trigger": "item", "formatter": "@tip", "confine": True} | _TIP,
        "xAxis": {
            "type": "time",
            "min": _ms(timeline.since),
            "max": _ms(timeline.until),
            "axisLabel": {
                "formatter": "@plantDay" if days else "@plantAxis",
                "color": "var(--soft)",
                "hideOverlap": True,
            },
            "axisLine": {"lineStyle": {"color": "var(--line)"}},
            "splitLine": {"show": True, "lineStyle": {"color": "var(--line)", "opacity": 0.5}},
        },
        "yAxis": {
            "type": "category",
            "data": labels,
            "inverse": True,  # the most frequent on top
            "axisLabel": {"color": "var(--ink)", "width": 214, "overflow": "truncate"},
            "axisTick": {"show": False},
            "axisLine": {"lineStyle": {"color": "var(--line)"}},
            "splitLine": {"show": True, "lineStyle": {"color": "var(--line)", "opacity": 0.4}},
        },
        "dataZoom": [
            {"type": "slider", "height": 24, "bottom": 8, "labelFormatter": "@plantTime"} | _SLIDER,
            # The wheel without shift scrolls the page.
            {"type": "inside", "zoomOnMouseWheel": "shift", "moveOnMouseMove": False, "moveOnMouseWheel": False},
        ],
        "series": [
            *_active(timeline, row),
            *(_alarms(timeline, severity, row) for severity in _SYMBOLS),
            {
                "name": text("machine.timeline.series.chatter"),
                "type": "scatter",
                "symbol": "circle",
                "symbolSize": 17,
                "itemStyle": {"color": "transparent", "borderColor": "var(--ink)", "borderWidth": 1.5},
                "data": chatter,
                "z": 1,
            },
            _bands(text("machine.timeline.series.flood"), _floods(timeline), "var(--bad-fill)", "solid"),
            _bands(text("machine.timeline.series.gap"), _gaps(timeline), "var(--usual)", "dashed"),
        ],
        "media": [
            {
                "query": {"maxWidth": 560},
                "option": {"grid": {"left": 104, "right": 8, "top": 66}, "yAxis": {"axisLabel": {"width": 92}}},
            },
            # Repeated, because a chart that was narrow once would stay so.
            {"option": {"grid": {"left": 230, "right": 18, "top": 42}, "yAxis": {"axisLabel": {"width": 214}}}},
        ],
    }


_TIP = {
    "backgroundColor": "var(--surface)",
    "borderColor": "var(--line)",
    "textStyle": {"color": "var(--ink)"},
}
_SLIDER = {
    "borderColor": "var(--line)",
    "fillerColor": "var(--line)",
    "textStyle": {"color": "var(--soft)"},
    "showDataShadow": False,
}


def _alarms(timeline: TimelineView, severity: str, row: Callable[[int], str]) -> dict[str, Any]:
    """Return the alarms of one severity; unknown severities count as medium."""
    own = [one for one in timeline.alarms if (one.severity if one.severity in _SYMBOLS else "medium") == severity]
    return {
        "name": severity_text(severity),
        "type": "scatter",
        "symbol": _SYMBOLS[severity],
        "symbolSize": 9,
        "itemStyle": {"color": f"var(--{severity}-fill)", "opacity": 0.9},
        "data": [
            {
                "value": [_ms(one.at), row(one.code)],
                "tip": f"{one.code} {one.text} ({severity_text(one.severity)})",
                "at": one.at.isoformat(),
            }
            for one in own
        ],
    }


def _active(timeline: TimelineView, row: Callable[[int], str]) -> list[dict[str, Any]]:
    """Return bars of the time in which alarms were active, if it is known; a repeated raise has no own bar."""
    bars, drawn = [], set()
    known = [(one.code, one.text, timeline.since, one.until, one.until is None) for one in timeline.earlier]
    known += [(one.code, one.text, one.at, one.until, one.active) for one in timeline.alarms]
    for code, alarm, start, until, is_active in known:
        end = timeline.until if is_active else until
        if end is None or (code, end) in drawn:
            continue
        drawn.add((code, end))
        still = text("machine.timeline.active.still")
        shown = still if until is None else plant_time(until, timeline.time_zone)
        tip = text("machine.timeline.active.tip", code=code, alarm=alarm, end=shown)
        coords = [[_ms(start), row(code)], [_ms(end), row(code)]]
        bars.append({"coords": coords, "tip": tip, "at": start.isoformat()})
    if not bars:
        return []
    return [
        {
            "name": text("machine.timeline.series.active"),
            "type": "lines",
            "coordinateSystem": "cartesian2d",
            "lineStyle": {"color": "var(--bar)", "width": 7, "opacity": 0.45},
            "itemStyle": {"color": "var(--bar)"},
            "data": bars,
            "z": 1,
        }
    ]


def _bands(name: str, areas: list[Any], colour: str, border: str) -> dict[str, Any]:
    """Return spans of time as shaded bands with their name above them."""
    return {
        "name": name,
        "type": "scatter",
        "data": [],
        "itemStyle": {"color": colour},
        "symbol": "rect",
        "markArea": {
            "label": {
                "show": len(areas) <= _MAX_LABELS,
                "position": "top",
                "color": "var(--soft)",
                "formatter": name,
                "fontSize": 11,
            },
            "itemStyle": {
                "color": colour,
                "opacity": 0.22,
                "borderColor": colour,
                "borderWidth": 1,
                "borderType": border,
            },
            "data": areas,
        },
    }


def _floods(timeline: TimelineView) -> list[Any]:
    def tip(flood: FloodView) -> str:
        peak, alarm = flood.peak_10min, flood.top_text
        return text("machine.timeline.flood.tip", count=flood.alarms, peak=peak, alarm=alarm)

    return [_area(flood.start, flood.end or timeline.until, tip(flood)) for flood in timeline.floods]


def _gaps(timeline: TimelineView) -> list[Any]:
    def tip(gap: GapView) -> str:
        return text("machine.timeline.gap.tip", count=gap.dropped, reason=gap_reason(gap.reason))

    return [_area(gap.first_at, gap.last_at, tip(gap)) for gap in timeline.gaps]


def _area(start: datetime, end: datetime, tip: str) -> list[dict[str, Any]]:
    return [{"xAxis": _ms(start), "tip": tip, "at": start.isoformat()}, {"xAxis": _ms(end)}]


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)
