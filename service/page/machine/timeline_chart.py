"""A timeline as an ECharts chart: a row a code, a point an alarm, a sign a severity."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from service.page.components.blocks import plant_time
from wire.rest.timelines import TimelineView

_ROWS = 14  # codes with a row of their own; the rest share one
_OTHERS = "other alarms"
_NAMED = 6  # bands that bear their name; more would write over each other, and the legend names them too
_SYMBOLS = {"high": "triangle", "medium": "diamond", "low": "circle"}


def options(found: TimelineView) -> dict[str, Any]:
    """Return the chart's options as plain data."""
    counts = Counter(alarm.code for alarm in found.alarms)
    texts = {alarm.code: f"{alarm.code} {alarm.text}" for alarm in found.alarms}
    rows = {code: texts[code] for code, _ in counts.most_common(_ROWS)}
    names = list(rows.values()) + ([_OTHERS] if len(counts) > len(rows) else [])

    days = found.until - found.since > timedelta(days=3)

    def row(code: int) -> str:
        return rows.get(code, _OTHERS)

    chatter = [
        {
            "value": [_ms(burst.start), row(burst.code)],
            "tip": f"{burst.code} {burst.text} chatters: {burst.alarms} times "
            f"until {plant_time(burst.end, found.time_zone)}",
            "at": burst.start.isoformat(),
        }
        for burst in found.chatter
        if burst.code in texts
    ]
    return {
        "grid": {"left": 230, "right": 18, "top": 42, "bottom": 92},
        "legend": {"top": 0, "left": 0, "itemWidth": 12, "itemHeight": 12, "textStyle": {"color": "var(--soft)"}},
        "tooltip": {"trigger": "item", "formatter": "@tip", "confine": True} | _TIP,
        "xAxis": {
            "type": "time",
            "min": _ms(found.since),
            "max": _ms(found.until),
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
            "data": names,
            "inverse": True,  # the commonest on top
            "axisLabel": {"color": "var(--ink)", "width": 214, "overflow": "truncate"},
            "axisTick": {"show": False},
            "axisLine": {"lineStyle": {"color": "var(--line)"}},
            "splitLine": {"show": True, "lineStyle": {"color": "var(--line)", "opacity": 0.4}},
        },
        "dataZoom": [
            {"type": "slider", "height": 24, "bottom": 8, "labelFormatter": "@plantTime"} | _SLIDER,
            # The wheel alone must go on scrolling the page.
            {"type": "inside", "zoomOnMouseWheel": "shift", "moveOnMouseMove": False, "moveOnMouseWheel": False},
        ],
        "series": [
            *(_alarms(found, severity, row) for severity in _SYMBOLS),
            {
                "name": "chatter",
                "type": "scatter",
                "symbol": "circle",
                "symbolSize": 17,
                "itemStyle": {"color": "transparent", "borderColor": "var(--ink)", "borderWidth": 1.5},
                "data": chatter,
                "z": 1,
            },
            _bands("flood", _floods(found), "var(--bad-fill)", "solid"),
            _bands("gap", _gaps(found), "var(--usual)", "dashed"),
        ],
        "media": [
            {
                "query": {"maxWidth": 560},
                "option": {"grid": {"left": 104, "right": 8, "top": 66}, "yAxis": {"axisLabel": {"width": 92}}},
            },
            # Said again, because a chart that was narrow once would otherwise stay so.
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


def _alarms(found: TimelineView, severity: str, row: Callable[[int], str]) -> dict[str, Any]:
    """Return the alarms of one severity; an unknown severity stands with the middle one."""
    own = [one for one in found.alarms if (one.severity if one.severity in _SYMBOLS else "medium") == severity]
    return {
        "name": f"{severity} severity",
        "type": "scatter",
        "symbol": _SYMBOLS[severity],
        "symbolSize": 9,
        "itemStyle": {"color": f"var(--{severity}-fill)", "opacity": 0.9},
        "data": [
            {
                "value": [_ms(one.at), row(one.code)],
                "tip": f"{one.code} {one.text} ({one.severity})",
                "at": one.at.isoformat(),
            }
            for one in own
        ],
    }


def _bands(name: str, areas: list[Any], colour: str, border: str) -> dict[str, Any]:
    """Return stretches of time as shaded bands with their name above them."""
    return {
        "name": name,
        "type": "scatter",
        "data": [],
        "itemStyle": {"color": colour},
        "symbol": "rect",
        "markArea": {
            "label": {
                "show": len(areas) <= _NAMED,
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


def _floods(found: TimelineView) -> list[Any]:
    return [
        _area(
            flood.start,
            flood.end or found.until,
            f"Flood: {flood.alarms} alarms, {flood.peak_10min} within ten minutes, most of them {flood.top_text}",
        )
        for flood in found.floods
    ]


def _gaps(found: TimelineView) -> list[Any]:
    return [
        _area(gap.first_at, gap.last_at, f"Gap: {gap.dropped} alarms lost, {gap.reason}") for gap in found.gaps
    ]


def _area(start: datetime, end: datetime, tip: str) -> list[dict[str, Any]]:
    return [{"xAxis": _ms(start), "tip": tip, "at": start.isoformat()}, {"xAxis": _ms(end)}]


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)
