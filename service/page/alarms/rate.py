"""The alarm rate over the span against the bands of ISA-18.2."""

from itertools import pairwise
from typing import Any

from nicegui import html

from service.page.components.blocks import number
from service.page.components.elements import Chart
from service.page.components.refreshable import Refreshable
from wire.enums import BucketLength, RateBand
from wire.rest.alarm_metrics import AlarmMetricsReport, BandLimits, BucketView
from wire.timestamps import isoformat

BANDS = {
    RateBand.ACCEPTABLE: ("●", "ac-good", "var(--good-fill)"),
    RateBand.MANAGEABLE: ("◆", "ac-sev-medium", "var(--medium-fill)"),
    RateBand.EXCESSIVE: ("▲", "ac-sev-high", "var(--high-fill)"),
}
_HEADROOM = 1.15
_FAINT = {
    "lineStyle": {"color": "var(--bar)", "opacity": 0.5},
    "areaStyle": {"color": "var(--bar)", "opacity": 0.15},
}
_SLIDER = {
    "borderColor": "var(--line)",
    "fillerColor": "transparent",
    "handleStyle": {"color": "var(--raised)", "borderColor": "var(--soft)"},
    "moveHandleStyle": {"color": "var(--soft)", "opacity": 0.6},
    "dataBackground": _FAINT,
    "selectedDataBackground": _FAINT,
}


class Rate:
    """A line of rates in front of the bands, each with its name."""

    def __init__(self) -> None:
        self._reading = Refreshable(_reading)
        self._chart = Chart({}, label="The alarm rate")

    def show(self, found: AlarmMetricsReport) -> None:
        """Show these figures; zoom stays."""
        self._reading.show(found.limits)
        self._chart.show(_options(found), label=_sentence(found), zone=found.rate.time_zone)


def _reading(limits: BandLimits) -> None:
    html.p(
        f"ISA-18.2 counts what one operator gets in a day: up to {limits.acceptable_up_to:g} are likely to be "
        f"acceptable, {limits.excessive_from:g} and more are too many. Here each machine stands for one operator; "
        "who minds three machines gets three times as many."
    ).classes("quiet small")


def _sentence(found: AlarmMetricsReport) -> str:
    rates = [one.alarms_per_day for one in found.rate.buckets if one.alarms_per_day is not None]
    if not rates:
        return "The alarm rate; too little was watched to say."
    return (
        f"Alarms a day and machine, {found.rate.bucket.value} by {found.rate.bucket.value}: at most "
        f"{number(max(rates), 0)}, over the whole span {number(found.total.alarms_per_day, 0)}."
    )


def _options(found: AlarmMetricsReport) -> dict[str, Any]:
    rates = [one.alarms_per_day for one in found.rate.buckets if one.alarms_per_day is not None]
    top = _top(max(rates, default=0.0), found.limits)
    axis = {"axisLine": {"lineStyle": {"color": "var(--line)"}}, "axisLabel": {"color": "var(--soft)"}}
    hourly = found.rate.bucket is BucketLength.HOUR
    return {
        "grid": {"left": 8, "right": 30, "top": 14, "bottom": 64, "containLabel": True},
        "tooltip": {"trigger": "axis", "formatter": "@tip"},
        "dataZoom": [
            {"type": "inside", "zoomOnMouseWheel": "ctrl", "moveOnMouseWheel": False},
            {"type": "slider", "height": 18, "bottom": 8, "labelFormatter": "", **_SLIDER},
        ],
        "xAxis": axis
        | {
            "type": "time",
            "splitLine": {"show": False},
            "axisLabel": {
                "color": "var(--soft)",
                "formatter": "@plantAxis" if hourly else "@plantDay",
                "hideOverlap": True,
            },
        },
        "yAxis": axis
        | {
            "type": "value",
            "min": 0,
            "max": top,
            "splitLine": {"show": False},
            "axisLabel": {"color": "var(--soft)", "formatter": "@number", "showMaxLabel": False},
        },
        "series": [
            {
                "name": "alarms a day and machine",
                "type": "line",
                "step": "end",
                "symbol": "none",
                "lineStyle": {"color": "var(--ink)", "width": 1.5},
                "itemStyle": {"color": "var(--ink)"},
                "data": _steps(found.rate.buckets),
                "markArea": {"silent": True, "data": _bands(found.limits, top)},
                "markLine": {
                    "silent": True,
                    "symbol": "none",
                    "label": {"show": False},
                    "lineStyle": {"color": "var(--soft)", "type": "dashed", "opacity": 0.7},
                    "data": [{"yAxis": limit} for limit in _limits(found.limits) if limit < top],
                },
            }
        ],
    }


def _steps(buckets: list[BucketView]) -> list[dict[str, Any]]:
    """Return a point where each bucket starts, and one where the last ends; what was not watched is a gap."""
    points = [_point(one, isoformat(one.start)) for one in buckets]
    ends = [_point(buckets[-1], isoformat(buckets[-1].end))] if buckets else []
    # A step drawn "end" changes at the next point, so a value holds from its own start to the next one's.
    held: list[dict[str, Any]] = []
    for before, after in pairwise([*points, *ends]):
        held.append(before)
        if before["value"][1] is not None and after["value"][1] is None:
            held.append({**before, "value": [after["value"][0], before["value"][1]]})
    return held + ends


def _point(bucket: BucketView, at: str) -> dict[str, Any]:
    rate = bucket.alarms_per_day
    words = "too little was watched" if rate is None else f"{rate:,.0f} alarms a day and machine"
    return {"value": [at, rate], "tip": f"{words}\n{bucket.alarms:,} alarms", "at": isoformat(bucket.start)}


def _top(highest: float, limits: BandLimits) -> float:
    """Return where the axis ends, so that the next band's edge can be seen and no more."""
    for edge in _limits(limits):
        if highest < edge:
            return round(edge * _HEADROOM)
    return round(highest * _HEADROOM)


def _limits(limits: BandLimits) -> list[float]:
    return [limits.acceptable_up_to, limits.excessive_from]


def _bands(limits: BandLimits, top: float) -> list[list[dict[str, Any]]]:
    edges = [0.0, limits.acceptable_up_to, limits.excessive_from, float("inf")]
    drawn: list[list[dict[str, Any]]] = []
    for (word, (sign, _, colour)), (low, high) in zip(BANDS.items(), pairwise(edges), strict=True):
        if low >= top:
            continue
        label = {
            "position": "insideTopLeft",
            "color": "var(--ink)",
            "fontSize": 12,
            "textBorderColor": "var(--surface)",
            "textBorderWidth": 3,
            "formatter": f"{sign} {word}",
        }
        style = {"color": colour, "opacity": 0.13}
        drawn.append([{"yAxis": low, "itemStyle": style, "label": label}, {"yAxis": min(high, top)}])
    return drawn
