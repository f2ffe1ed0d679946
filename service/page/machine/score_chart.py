"""The accuracy by day as an ECharts chart: the model and both baselines."""

from datetime import date
from typing import Any, Final

from service.page.components.blocks import number
from service.page.texts import text
from wire.rest.scores import ScoreboardView, ScoreRow, ScoresView

METRICS: Final = ("f1", "brier_skill", "average_precision")
# Colour, line and symbol: colour is never the only difference.
_SERIES: Final = {
    "model": ("var(--bar)", "solid", "circle"),
    "persistence": ("var(--high-fill)", "dashed", "triangle"),
    "base_rate": ("var(--usual)", "dotted", "rect"),
}


def options(board: ScoreboardView, metric: str) -> dict[str, Any]:
    """Return the options of the chart as plain data."""
    rows = sorted(board.rows, key=lambda row: row.day or date.min)
    return {
        "grid": {"left": 44, "right": 16, "top": 36, "bottom": 28},
        "legend": {"top": 0, "left": 0, "textStyle": {"color": "var(--soft)"}, "itemWidth": 28},
        "tooltip": {
            "trigger": "item",
            "formatter": "@tip",
            "confine": True,
            "backgroundColor": "var(--surface)",
            "borderColor": "var(--line)",
            "textStyle": {"color": "var(--ink)"},
        },
        "xAxis": {
            "type": "category",
            "data": [_day(row) for row in rows],
            "axisLabel": {"color": "var(--soft)", "hideOverlap": True},
            "axisLine": {"lineStyle": {"color": "var(--line)"}},
        },
        "yAxis": {
            "type": "value",
            "max": 1,
            "axisLabel": {"formatter": "@number", "color": "var(--soft)"},
            "splitLine": {"lineStyle": {"color": "var(--line)", "opacity": 0.6}},
        },
        "series": [_series(rows, name, metric) for name in _SERIES],
        "media": [
            {"query": {"maxWidth": 560}, "option": {"grid": {"top": 62}}},
            {"option": {"grid": {"top": 36}}},
        ],
    }


def summary(board: ScoreboardView, metric: str) -> str:
    """Return the chart as a sentence."""
    if board.total is None:
        return text("machine.scores.empty")
    values = [f"{_name(name)} {number(getattr(getattr(board.total, name), metric))}" for name in _SERIES]
    title = text(f"machine.scores.{metric}")
    return text("machine.scores.label", metric=title, count=len(board.rows), values=", ".join(values))


def _series(rows: list[ScoreRow], name: str, metric: str) -> dict[str, Any]:
    colour, line, symbol = _SERIES[name]
    points = []
    for row in rows:
        scores: ScoresView = getattr(row.metrics, name)
        value = getattr(scores, metric)
        if value is not None:
            points.append({"value": [_day(row), round(value, 4)], "tip": _tip(row, scores, name, metric, value)})
    return {
        "name": _name(name),
        "type": "line",
        "symbol": symbol,
        "symbolSize": 8,
        "itemStyle": {"color": colour},
        "lineStyle": {"color": colour, "type": line, "width": 2.5 if name == "model" else 1.5},
        "data": points,
        "z": 3 if name == "model" else 2,
    }


def _tip(row: ScoreRow, scores: ScoresView, name: str, metric: str, value: float) -> str:
    score = text(
        "machine.scores.tip",
        day=_day(row),
        series=_name(name),
        metric=text(f"machine.scores.{metric}"),
        value=number(value),
    )
    counts = text(
        "machine.scores.tip.counts",
        hits=scores.hits,
        misses=scores.positives - scores.hits,
        false_alarms=scores.predicted - scores.hits,
        forecasts=row.metrics.forecasts,
    )
    return f"{score}\n{counts}"


def _name(series: str) -> str:
    return text(f"machine.scores.series.{series}")


def _day(row: ScoreRow) -> str:
    """Return the UTC day of a row."""
    return "" if row.day is None else f"{row.day:%a %d %b}"
