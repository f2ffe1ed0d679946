"""The scoreboard: forecasts that were served, beside persistence and the base rate, and how honest they were."""

from datetime import timedelta
from typing import Any

from nicegui import events, html

from alarmcast import AsyncClient
from service.page.components.blocks import NOTHING, Cell, empty_state, number, percent, stats, table
from service.page.components.elements import Chart
from service.page.layout import show_api_errors
from wire.enums import Grouping
from wire.rest.scores import CalibrationBinView, ScoreboardView, ScoreRow, ScoreSummaryView

SPANS = {"7": "7 days", "30": "30 days", "90": "90 days"}
LINES = {Grouping.MACHINE: "machine", Grouping.CODE: "alarm", Grouping.VERSION: "version"}
_MOST = 60


class Board:
    """The reader's choice of span and lines, and what the API says to it."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._days, self._by = 30, Grouping.MACHINE
        with html.div().classes("ac-tools"):
            self._select("Span ", SPANS, str(self._days), self._choose_span)
            self._select(
                "A line for each ",
                {key.value: word for key, word in LINES.items()},
                self._by.value,
                self._choose_lines,
            )
        self._place = html.div().classes("ac-stack")
        self._shown: ScoreboardView | None = None

    async def renew(self) -> None:
        """Ask again, and draw anew what changed."""
        until = (await self._client.health.status()).plant_time
        board = await self._client.scores.scoreboard(
            since=until - timedelta(days=self._days), until=until, by=self._by
        )
        if self._shown is not None and _without_times(board) == _without_times(self._shown):
            return
        self._shown = board
        self._place.clear()
        with self._place:
            _draw(board, self._by)

    def _select(self, label: str, options: dict[str, str], chosen: str, choose: Any) -> None:
        with html.label(label):
            select = html.select()
            with select:
                for value, words in options.items():
                    option = html.option(words, value=value)
                    if value == chosen:
                        option.props("selected")
            select.on("change", choose, js_handler="(e) => emit(e.target.value)")

    async def _choose_span(self, event: events.GenericEventArguments) -> None:
        self._days = int(event.args) if event.args in SPANS else self._days
        with show_api_errors():
            await self.renew()

    async def _choose_lines(self, event: events.GenericEventArguments) -> None:
        self._by = Grouping(event.args)
        with show_api_errors():
            await self.renew()


def _without_times(board: ScoreboardView) -> dict[str, Any]:
    return board.model_dump(exclude={"since", "until"})


def _draw(board: ScoreboardView, by: Grouping) -> None:
    total = board.total
    if total is None:
        empty_state(
            "Nothing scored yet",
            "A forecast is scored once its horizon has closed and the machine was heard after it: eight hours "
            f"after it was made. {board.pending} wait for that.",
        )
        return
    stats(
        {
            "lift over persistence": _times(total.lift_over_persistence),
            "average precision": number(total.model.average_precision, 3),
            "Brier skill": _signed(total.model.brier_skill),
            "calibration error": percent(total.model.calibration_error),
            "days of machines": total.days,
        },
        {
            "lift over persistence": "in average precision",
            "average precision": f"persistence {number(total.persistence.average_precision, 3)}, "
            f"base rate {number(total.base_rate.average_precision, 3)}",
            "Brier skill": "over the base rate; 0 is no better",
            "calibration error": "mean distance of said and came",
            "days of machines": f"of independent evidence, from {total.forecasts:,} forecasts",
        },
    )
    html.p(_beside(board, total)).classes("small quiet")
    with html.div().classes("ac-board"):
        with html.div():
            html.h3("Said and came")
            html.p(
                "Forecasts that said about the same, by what they said; on the line, what was said is what came. "
                "The larger the point, the more there are."
            ).classes("small quiet")
            Chart(calibration(total), label=_calibration_words(total)).style("height: 22rem")
        with html.div():
            html.h3(f"By {LINES[by]}")
            _table(board, by)


def _table(board: ScoreboardView, by: Grouping) -> None:
    lines = sorted(board.rows, key=lambda line: -(line.metrics.model.positives if by is Grouping.CODE else 0))
    head = (
        LINES[by].capitalize(),
        "Days",
        "Average precision",
        "of persistence",
        "of base rate",
        "Lift",
        "Brier skill",
        "F1",
        "of persistence",
    )
    table(
        head,
        [_line(line, by) for line in lines[:_MOST]],
        numbers=range(1, len(head)),
        label=f"Scores by {LINES[by]}",
    )
    if len(lines) > _MOST:
        html.p(f"and {len(lines) - _MOST} more over REST").classes("small quiet")


def _line(line: ScoreRow, by: Grouping) -> tuple[Cell, ...]:
    name = {
        Grouping.MACHINE: f"{line.site}/{line.machine}",
        Grouping.CODE: f"{line.code} {line.text}",
        Grouping.VERSION: line.model_version or NOTHING,
    }[by]
    it = line.metrics
    return (
        name,
        it.days,
        lambda: html.strong(number(it.model.average_precision, 3)),
        number(it.persistence.average_precision, 3),
        number(it.base_rate.average_precision, 3),
        _times(it.lift_over_persistence),
        _signed(it.model.brier_skill),
        number(it.model.f1, 3),
        number(it.persistence.f1, 3),
    )


def calibration(total: ScoreSummaryView) -> dict[str, Any]:
    """Return the reliability curve of the model and of the base rate, with the diagonal."""
    most = max((one.pairs for one in (*total.model.reliability, *total.base_rate.reliability)), default=1)
    axis = {
        "type": "value",
        "min": 0,
        "max": 1,
        "nameLocation": "middle",
        "nameTextStyle": {"color": "var(--soft)"},
        "axisLabel": {"color": "var(--soft)", "formatter": "@percent"},
        "splitLine": {"lineStyle": {"color": "var(--line)"}},
    }
    return {
        "grid": {"left": 24, "right": 24, "top": 34, "bottom": 28, "containLabel": True},
        "legend": {"top": 0, "left": 0, "textStyle": {"color": "var(--ink)"}, "data": ["model", "base rate"]},
        "tooltip": {"formatter": "@tip", "confine": True},
        "xAxis": {**axis, "name": "said", "nameGap": 28},
        "yAxis": {**axis, "name": "came", "nameGap": 44},
        "series": [
            {
                "name": "as said",
                "type": "line",
                "data": [[0, 0], [1, 1]],
                "symbol": "none",
                "silent": True,
                "lineStyle": {"color": "var(--usual)", "type": "dashed", "width": 1},
            },
            _curve("model", total.model.reliability, most, "var(--bar)", "circle"),
            _curve("base rate", total.base_rate.reliability, most, "var(--usual)", "diamond"),
        ],
    }


def _curve(name: str, bins: list[CalibrationBinView], most: int, color: str, symbol: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "line",
        "symbol": symbol,
        "lineStyle": {"color": color, "width": 1.5, "type": "solid" if symbol == "circle" else "dotted"},
        "itemStyle": {
            "color": color if symbol == "circle" else "var(--surface)",
            "borderColor": color,
            "borderWidth": 1.5,
        },
        "data": [
            {
                "value": [one.predicted, one.observed],
                "symbolSize": round(6 + 20 * (one.pairs / most) ** 0.5, 1),
                "tip": f"{name} said {percent(one.predicted)}\nobserved {percent(one.observed)} of {one.pairs:,}",
            }
            for one in bins
        ],
    }


def _beside(board: ScoreboardView, total: ScoreSummaryView) -> str:
    parts = [
        f"{board.pending:,} wait to be scored",
        f"{total.revision_count:,} were scored again for something late",
    ]
    if total.unobserved:
        parts.append(f"{total.unobserved:,} left out because events of their horizon were lost")
    return ", ".join(parts) + "."


def _calibration_words(total: ScoreSummaryView) -> str:
    parts = ", ".join(f"{percent(one.predicted)} came {percent(one.observed)}" for one in total.model.reliability)
    return f"Calibration of the model, what was said and what came: {parts}."


def _times(lift: float | None) -> str:
    return NOTHING if lift is None else f"{lift:.2f} times"


def _signed(value: float | None) -> str:
    return NOTHING if value is None else f"{value:+.3f}"
