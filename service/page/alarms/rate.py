"""The alarm rate over the period against the bands of ISA-18.2."""

from itertools import pairwise
from typing import Any, NamedTuple

from nicegui import html

from service.page.components.blocks import number
from service.page.components.elements import Chart
from service.page.components.refreshable import Refreshable
from service.page.texts import text
from wire.enums import BucketLength, RateBand
from wire.rest.alarm_metrics import AlarmMetricsReport, BandLimits, BucketView
from wire.timestamps import isoformat


class _BandStyle(NamedTuple):
    sign: str
    tone: str
    colour: str


BANDS = {
    RateBand.ACCEPTABLE: _BandStyle("●", "ac-good", "var(--good-fill)"),
    RateBand.MANAGEABLE: _BandStyle("◆", "ac-sev-medium", "var(--medium-fill)"),
    RateBand.EXCESSIVE: _BandStyle("▲", "ac-sev-high", "var(--high-fill)"),
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


class RateChart:
    """A line of rates in front of the named bands."""

    def __init__(self) -> None:
        self._help = Refreshable(_help)
        self._chart = Chart({}, label=text("alarms.rate.title"))

    def show(self, report: AlarmMetricsReport) -> None:
        """Show the rates of a report; the zoom is kept."""
        self._help.show(report.limits)
        self._chart.show(_options(report), label=_label(report), zone=report.rate.time_zone)


def band_name(band: RateBand) -> str:
    """Return the name of a band."""
    return {
        RateBand.ACCEPTABLE: text("alarms.band.acceptable"),
        RateBand.MANAGEABLE: text("alarms.band.manageable"),
        RateBand.EXCESSIVE: text("alarms.band.excessive"),
    }[band]


def _help(limits: BandLimits) -> None:
    words = text("alarms.rate.help", acceptable=limits.acceptable_up_to, excessive=limits.excessive_from)
    html.p(words).classes("quiet small")


def _label(report: AlarmMetricsReport) -> str:
    rates = [one.alarms_per_day for one in report.rate.buckets if one.alarms_per_day is not None]
    if not rates:
        return text("alarms.rate.label_empty")
    hourly = report.rate.bucket is BucketLength.HOUR
    return text(
        "alarms.rate.label",
        bucket=text("alarms.rate.bucket.hour") if hourly else text("alarms.rate.bucket.day"),
        peak=number(max(rates), 0),
        mean=number(report.total.alarms_per_day, 0),
    )


def _options(report: AlarmMetricsReport) -> dict[str, Any]:
    rates = [one.alarms_per_day for one in report.rate.buckets if one.alarms_per_day is not None]
    top = _top(max(rates, default=0.0), report.limits)
    axis = {"axisLine": {"lineStyle": {"color": "var(--line)"}}, "axisLabel": {"color": "var(--soft)"}}
    hourly = report.rate.bucket is BucketLength.HOUR
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
                "name": text("alarms.rate.series"),
                "type": "line",
                "step": "end",
                "symbol": "none",
                "lineStyle": {"color": "var(--ink)", "width": 1.5},
                "itemStyle": {"color": "var(--ink)"},
                "data": _steps(report.rate.buckets),
                "markArea": {"silent": True, "data": _bands(report.limits, top)},
                "markLine": {
                    "silent": True,
                    "symbol": "none",
                    "label": {"show": False},
                    "lineStyle": {"color": "var(--soft)", "type": "dashed", "opacity": 0.7},
                    "data": [{"yAxis": limit} for limit in _limits(report.limits) if limit < top],
                },
            }
        ],
    }


def _steps(buckets: list[BucketView]) -> list[dict[str, Any]]:
    """Return a point at each bucket's start and one at the last end; time without monitoring is a gap."""
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
    if rate is None:
        tip = text("alarms.rate.tip_short", alarms=bucket.alarms)
    else:
        tip = text("alarms.rate.tip", rate=rate, alarms=bucket.alarms)
    return {"value": [at, rate], "tip": tip, "at": isoformat(bucket.start)}


def _top(highest: float, limits: BandLimits) -> float:
    """Return the end of the axis: just above the next band limit."""
    for edge in _limits(limits):
        if highest < edge:
            return round(edge * _HEADROOM)
    return round(highest * _HEADROOM)


def _limits(limits: BandLimits) -> list[float]:
    return [limits.acceptable_up_to, limits.excessive_from]


def _bands(limits: BandLimits, top: float) -> list[list[dict[str, Any]]]:
    edges = [0.0, limits.acceptable_up_to, limits.excessive_from, float("inf")]
    drawn: list[list[dict[str, Any]]] = []
    for (band, style), (low, high) in zip(BANDS.items(), pairwise(edges), strict=True):
        if low >= top:
            continue
        label = {
            "position": "insideTopLeft",
            "color": "var(--ink)",
            "fontSize": 12,
            "textBorderColor": "var(--surface)",
            "textBorderWidth": 3,
            "formatter": f"{style.sign} {band_name(band)}",
        }
        area = {"color": style.colour, "opacity": 0.13}
        drawn.append([{"yAxis": low, "itemStyle": area, "label": label}, {"yAxis": min(high, top)}])
    return drawn
