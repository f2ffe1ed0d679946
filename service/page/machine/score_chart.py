"""The score day by day as an ECharts chart: the model beside persistence and the base rate."""

from datetime import date
from typing import Any, NamedTuple

from service.page.components.blocks import number
from wire.rest.scores import ScoreboardView, ScoreRow, ScoresView


class Measure(NamedTuple):
    """A figure that can be drawn, and how to read it."""

    title: str
    reading: str


MEASURES = {
    "f1": Measure(
        "F1",
        "F1 weighs missed alarms and false alarms alike: 1 is perfect. The model is worth its place where its "
        "line lies above both others on the same days.",
    ),
    "brier_skill": Measure(
        "Brier skill",
        "Brier skill says how much closer the probabilities come to what happened than the machine's base rate "
        "does: 1 is perfect, 0 is no better, below 0 is worse.",
    ),
    "average_precision": Measure(
        "Average precision",
        "Average precision says how well likelier alarms are told from less likely ones, whatever the threshold: "
        "1 is perfect.",
    ),
}
# Told apart by dash and sign as well as by colour.
_WHO = {
    "model": ("the model", "var(--bar)", "solid", "circle"),
    "persistence": ("what was comes again", "var(--high-fill)", "dashed", "triangle"),
    "base_rate": ("as often as usual", "var(--usual)", "dotted", "rect"),
}


def options(board: ScoreboardView, measure: str) -> dict[str, Any]:
    """Return the chart's options as plain data."""
    lines = sorted(board.rows, key=lambda line: line.day or date.min)
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
            "data": [_name(line) for line in lines],
            "axisLabel": {"color": "var(--soft)", "hideOverlap": True},
            "axisLine": {"lineStyle": {"color": "var(--line)"}},
        },
        "yAxis": {
            "type": "value",
            "max": 1,
            "axisLabel": {"formatter": "@number", "color": "var(--soft)"},
            "splitLine": {"lineStyle": {"color": "var(--line)", "opacity": 0.6}},
        },
        "series": [_series(lines, who, measure) for who in _WHO],
        "media": [
            {"query": {"maxWidth": 560}, "option": {"grid": {"top": 62}}},
            {"option": {"grid": {"top": 36}}},
        ],
    }


def spoken(board: ScoreboardView, measure: str) -> str:
    """Return the chart as a sentence."""
    if board.total is None:
        return "No scores yet"
    figures = {who: number(getattr(getattr(board.total, who), measure)) for who in _WHO}
    words = ", ".join(f"{_WHO[who][0]} {value}" for who, value in figures.items())
    return f"{MEASURES[measure].title} by day over {len(board.rows)} days; in all {words}"


def _series(lines: list[ScoreRow], who: str, measure: str) -> dict[str, Any]:
    name, colour, dash, symbol = _WHO[who]
    points = []
    for line in lines:
        scores: ScoresView = getattr(line.metrics, who)
        value = getattr(scores, measure)
        if value is None:
            continue
        tip = (
            f"{_name(line)}, {name}: {MEASURES[measure].title} {number(value)}\n"
            f"{scores.hits} hits, {scores.positives - scores.hits} misses, "
            f"{scores.predicted - scores.hits} false alarms in {line.metrics.forecasts} forecasts"
        )
        points.append({"value": [_name(line), round(value, 4)], "tip": tip})
    return {
        "name": name,
        "type": "line",
        "symbol": symbol,
        "symbolSize": 8,
        "itemStyle": {"color": colour},
        "lineStyle": {"color": colour, "type": dash, "width": 2.5 if who == "model" else 1.5},
        "data": points,
        "z": 3 if who == "model" else 2,
    }


def _name(line: ScoreRow) -> str:
    """Return the line's day, in UTC as the API has it."""
    return "" if line.day is None else f"{line.day:%a %d %b}"
