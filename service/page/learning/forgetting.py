"""The forgetting matrix: how every version did in every machine's exam."""

from collections.abc import Mapping, Sequence
from typing import Any

from nicegui import html

from service.page.components.blocks import NOTHING, empty_state, number, stats, table
from service.page.components.elements import Chart
from wire.rest.models import ExamFigures, ModelDetail

FIGURES = {"average_precision": "average precision", "brier_skill": "Brier skill", "macro_f1": "F1"}
_STEPS = "abcdefg"  # of the colour scale, lowest first: --heat-a … --heat-g
_NARROWEST = 0.02  # of a step, so that a hair's breadth does not look like a loss
_UPRIGHT = 8  # columns whose names fit side by side
_READABLE = 24  # columns that still have room for their numbers


class Forgetting:
    """The figures, the map, and the same as a table; which figure is the reader's choice."""

    def __init__(self) -> None:
        self._figure = "average_precision"
        self._detail: ModelDetail | None = None
        self._place = html.div().classes("ac-stack")
        self._chart: Chart | None = None
        self._learned: Mapping[str, Sequence[str]] = {}

    def show(self, detail: ModelDetail | None, learned: Mapping[str, Sequence[str]]) -> None:
        """Draw the matrix of the version that serves; ``learned`` says which machines each version knows."""
        self._detail, self._learned = detail, learned
        self._place.clear()
        with self._place:
            if detail is None or not detail.matrix:
                empty_state(
                    "No exams yet", "Every version sits the exam of every machine it has learned; none has yet."
                )
                return
            self._draw(detail)

    def _draw(self, detail: ModelDetail) -> None:
        forgetting = detail.report.get("forgetting", {})
        stats(
            {f"forgotten of {words}": _signed(forgetting.get(name)) for name, words in FIGURES.items()},
            {
                "forgotten of average precision": "mean share lost since each machine's best",
                "forgotten of Brier skill": "mean lost since each machine's best",
                "forgotten of F1": "mean share lost since each machine's best",
            },
        )
        with html.div().classes("ac-tools"), html.label("Figure "):
            choice = html.select()
            with choice:
                for name, words in FIGURES.items():
                    option = html.option(words, value=name)
                    if name == self._figure:
                        option.props("selected")
            choice.on("change", lambda event: self._choose(event.args), js_handler="(e) => emit(e.target.value)")
        self._chart = Chart(heat_map(detail, self._figure, self._learned), label=_label(detail, self._figure))
        self._chart.style(f"height: {7 + 2.1 * len(detail.matrix):.1f}rem")
        self._legend()
        html.p(
            "A line for each version, oldest above; a column for each machine, in the order they were learned. "
            "A column that gets worse from top to bottom is a machine that is being forgotten. "
            "In brackets: before the machine was learned. "
            "Where a machine was learned again (↻) its exam is a new one, and only figures below can be compared."
        ).classes("small quiet")
        self._as_table(detail)

    def _choose(self, figure: str) -> None:
        if self._detail is None or self._chart is None or figure not in FIGURES:
            return
        self._figure = figure
        self._chart.show(heat_map(self._detail, figure, self._learned), label=_label(self._detail, figure))
        self._table.clear()
        with self._table:
            self._rows(self._detail)

    def _legend(self) -> None:
        with html.div().classes("ac-scale small quiet").props('aria-hidden="true"'):
            html.span("worse")
            for step in _STEPS:
                html.i().classes(f"ac-heat-{step}")
            html.span("better")

    def _as_table(self, detail: ModelDetail) -> None:
        with html.details():
            html.summary("As a table")
            self._table = html.div()
            with self._table:
                self._rows(detail)

    def _rows(self, detail: ModelDetail) -> None:
        columns = machines_of(detail)
        table(
            ("Version", *columns),
            [
                (version, *(number(_value(exams.get(machine), self._figure), 3) for machine in columns))
                for version, exams in detail.matrix.items()
            ],
            numbers=range(1, len(columns) + 1),
            label=f"{FIGURES[self._figure]} by version and machine",
        )


def machines_of(detail: ModelDetail) -> list[str]:
    """Return the machines that any version of the line was examined in, in the order of their first exam."""
    return list(dict.fromkeys(machine for exams in detail.matrix.values() for machine in exams))


def heat_map(detail: ModelDetail, figure: str, learned: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the chart of one figure; its numbers stand in the cells as long as there is room."""
    versions, machines = list(detail.matrix), machines_of(detail)
    data = _cells(detail, figure, learned)
    readable = len(machines) <= _READABLE
    axis = {"axisLine": {"show": False}, "axisTick": {"show": False}, "splitArea": {"show": False}}
    return {
        "grid": {"left": 8, "right": 8, "top": 8, "bottom": 8, "containLabel": True},
        "tooltip": {"formatter": "@tip", "confine": True},
        "xAxis": {
            "type": "category",
            "data": [machine.replace("/", "\n") for machine in machines],
            "position": "top",
            "axisLabel": {
                "color": "var(--soft)",
                "interval": 0,
                "lineHeight": 15,
                "rotate": 60 if len(machines) > _UPRIGHT else 0,
            },
            **axis,
        },
        "yAxis": {
            "type": "category",
            "data": versions,
            "inverse": True,
            "axisLabel": {"color": "var(--soft)", "interval": 0 if len(versions) <= _READABLE else "auto"},
            **axis,
        },
        # ECharts draws no heat map without one; the colours are the cells' own.
        "visualMap": {"show": False, "min": 0, "max": 1},
        "series": [
            {
                "type": "heatmap",
                "data": data,
                "label": {"show": readable},
                "itemStyle": {"borderWidth": 2, "borderColor": "var(--surface)"},
                "emphasis": {"itemStyle": {"borderColor": "var(--ink)"}},
            }
        ],
    }


def _cells(detail: ModelDetail, figure: str, learned: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    machines = machines_of(detail)
    marks = [
        (line, version, machine, one, value)
        for line, (version, exams) in enumerate(detail.matrix.items())
        for machine, one in exams.items()
        if (value := _value(one, figure)) is not None
    ]
    best = max((value for *_, value in marks), default=1.0)
    width = max((best - min((value for *_, value in marks), default=0.0)) / len(_STEPS), _NARROWEST)
    newest: dict[str, int] = {}
    cells = []
    for line, version, machine, one, value in marks:
        step = _STEPS[-1 - min(int((best - value) / width), len(_STEPS) - 1)]
        words, tip = f"{value:.2f}", f"{version} in the exam of {machine}\n{FIGURES[figure]} {value:.3f}"
        if machine not in learned.get(version, ()):
            words, tip = f"({words})", f"{tip}\nbefore it was learned"
        if newest.get(machine, one.exam) != one.exam:
            words, tip = f"↻ {words}", f"{tip}\nlearned again: a new exam"
        newest[machine] = one.exam
        cells.append(
            {
                "value": [machines.index(machine), line, value],
                "itemStyle": {"color": f"var(--heat-{step})"},
                "label": {"color": f"var(--heat-ink-{step})", "formatter": words},
                "tip": tip,
            }
        )
    return cells


def _value(one: ExamFigures | None, figure: str) -> float | None:
    value: float | None = getattr(one, figure) if one else None
    return value


def _signed(value: float | None) -> str:
    return NOTHING if value is None else f"{value:+.3f}"


def _label(detail: ModelDetail, figure: str) -> str:
    return (
        f"{FIGURES[figure]} of {len(detail.matrix)} versions in the exams of {len(machines_of(detail))} machines; "
        "the same figures follow as a table."
    )
