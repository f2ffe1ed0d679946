"""The forgetting matrix: validation results of every version on every machine."""

from collections.abc import Mapping, Sequence
from typing import Any

from nicegui import html

from service.page.components.blocks import NOTHING, empty_state, number, stats, table
from service.page.components.elements import Chart
from service.page.components.forms import select
from service.page.texts import text
from wire.rest.models import ExamFigures, ModelDetail

_STEPS = "abcdefg"  # of the colour scale, lowest first: --heat-a … --heat-g
_MIN_STEP = 0.02  # so that a tiny difference does not look like a loss
_MAX_HORIZONTAL = 8  # columns whose names fit side by side
_MAX_LABELLED = 24  # columns with room for their values


class Forgetting:
    """The forgetting figures, a heat map of the chosen metric, and the same values as a table."""

    def __init__(self) -> None:
        self._metric = "average_precision"
        self._detail: ModelDetail | None = None
        self._place = html.div().classes("ac-stack")
        self._chart: Chart | None = None
        self._trained: Mapping[str, Sequence[str]] = {}

    def show(self, detail: ModelDetail | None, trained: Mapping[str, Sequence[str]]) -> None:
        """Draw the matrix of the active version; ``trained`` names the machines of each version."""
        self._detail, self._trained = detail, trained
        self._place.clear()
        with self._place:
            if detail is None or not detail.matrix:
                empty_state(text("learning.forgetting.none"), text("learning.forgetting.none_help"))
                return
            self._draw(detail)

    def _draw(self, detail: ModelDetail) -> None:
        forgetting = detail.report.get("forgetting", {})
        share_note = text("learning.forgetting.share_note")
        stats(
            {
                text("learning.forgetting.ap"): (_share(forgetting.get("average_precision")), share_note),
                text("learning.forgetting.brier"): (
                    number(forgetting.get("brier_skill"), 3),
                    text("learning.forgetting.absolute_note"),
                ),
                text("learning.forgetting.f1"): (_share(forgetting.get("macro_f1")), share_note),
            }
        )
        with html.div().classes("ac-tools"), html.label():
            html.span(text("learning.forgetting.metric"))
            choice = select("metric", _metrics().items(), self._metric)
            choice.on("change", lambda event: self._choose(event.args), js_handler="(e) => emit(e.target.value)")
        self._chart = Chart(heat_map(detail, self._metric, self._trained), label=_label(detail, self._metric))
        self._chart.style(f"height: {7 + 2.1 * len(detail.matrix):.1f}rem")
        self._legend()
        html.p(text("learning.forgetting.help")).classes("small quiet")
        self._draw_table(detail)

    def _choose(self, metric: str) -> None:
        if self._detail is None or self._chart is None or metric not in _metrics():
            return
        self._metric = metric
        self._chart.show(heat_map(self._detail, metric, self._trained), label=_label(self._detail, metric))
        self._table.clear()
        with self._table:
            self._rows(self._detail)

    def _legend(self) -> None:
        with html.div().classes("ac-scale small quiet").props('aria-hidden="true"'):
            html.span(text("learning.forgetting.worse"))
            for step in _STEPS:
                html.i().classes(f"ac-heat-{step}")
            html.span(text("learning.forgetting.better"))

    def _draw_table(self, detail: ModelDetail) -> None:
        with html.details():
            html.summary(text("learning.show_table"))
            self._table = html.div()
            with self._table:
                self._rows(detail)

    def _rows(self, detail: ModelDetail) -> None:
        columns = machines_of(detail)
        table(
            (text("learning.forgetting.version"), *columns),
            [
                (version, *(number(_value(exams.get(machine), self._metric), 3) for machine in columns))
                for version, exams in detail.matrix.items()
            ],
            numbers=range(1, len(columns) + 1),
            label=text("learning.forgetting.table_label", metric=_metrics()[self._metric]),
        )


def machines_of(detail: ModelDetail) -> list[str]:
    """Return all validated machines, in the order of their first validation."""
    return list(dict.fromkeys(machine for exams in detail.matrix.values() for machine in exams))


def heat_map(detail: ModelDetail, metric: str, trained: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the chart of one metric; the cells show their values while there is room."""
    versions, machines = list(detail.matrix), machines_of(detail)
    data = _cells(detail, metric, trained)
    labelled = len(machines) <= _MAX_LABELLED
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
                "rotate": 60 if len(machines) > _MAX_HORIZONTAL else 0,
            },
            **axis,
        },
        "yAxis": {
            "type": "category",
            "data": versions,
            "inverse": True,
            "axisLabel": {"color": "var(--soft)", "interval": 0 if len(versions) <= _MAX_LABELLED else "auto"},
            **axis,
        },
        # ECharts requires one for a heat map; the cells have their own colours.
        "visualMap": {"show": False, "min": 0, "max": 1},
        "series": [
            {
                "type": "heatmap",
                "data": data,
                "label": {"show": labelled},
                "itemStyle": {"borderWidth": 2, "borderColor": "var(--surface)"},
                "emphasis": {"itemStyle": {"borderColor": "var(--ink)"}},
            }
        ],
    }


def _cells(detail: ModelDetail, metric: str, trained: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    machines = machines_of(detail)
    results = [
        (row, version, machine, one, value)
        for row, (version, exams) in enumerate(detail.matrix.items())
        for machine, one in exams.items()
        if (value := _value(one, metric)) is not None
    ]
    best = max((value for *_, value in results), default=1.0)
    width = max((best - min((value for *_, value in results), default=0.0)) / len(_STEPS), _MIN_STEP)
    newest: dict[str, int] = {}
    cells = []
    for row, version, machine, one, value in results:
        step = _STEPS[-1 - min(int((best - value) / width), len(_STEPS) - 1)]
        label = f"{value:.2f}"
        name = _metrics()[metric]
        tip = text("learning.forgetting.tip", version=version, machine=machine, metric=name, value=value)
        if machine not in trained.get(version, ()):
            label, tip = f"({label})", tip + text("learning.forgetting.tip_before")
        if newest.get(machine, one.exam) != one.exam:
            label, tip = f"↻ {label}", tip + text("learning.forgetting.tip_new")
        newest[machine] = one.exam
        cells.append(
            {
                "value": [machines.index(machine), row, value],
                "itemStyle": {"color": f"var(--heat-{step})"},
                "label": {"color": f"var(--heat-ink-{step})", "formatter": label},
                "tip": tip,
            }
        )
    return cells


def _value(one: ExamFigures | None, metric: str) -> float | None:
    value: float | None = getattr(one, metric) if one else None
    return value


def _share(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.1f} %"


def _metrics() -> dict[str, str]:
    return {
        "average_precision": text("learning.metric.average_precision"),
        "brier_skill": text("learning.metric.brier_skill"),
        "macro_f1": text("learning.metric.macro_f1"),
    }


def _label(detail: ModelDetail, metric: str) -> str:
    versions, machines = len(detail.matrix), len(machines_of(detail))
    name = _metrics()[metric]
    return text("learning.forgetting.chart_label", metric=name, versions=versions, machines=machines)
