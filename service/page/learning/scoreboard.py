"""Live accuracy: evaluated forecasts compared with two baselines, and their calibration."""

from datetime import timedelta
from typing import Any

from nicegui import events, html

from alarmcast import AsyncClient
from service.page.components.blocks import NOTHING, Cell, empty_state, number, percent, stats, table
from service.page.components.elements import Chart
from service.page.components.forms import chooser
from service.page.layout import show_api_errors
from service.page.learning.answers import draw_answers
from service.page.texts import text
from wire.enums import Grouping, Horizon
from wire.rest.scores import CalibrationBinView, ScoreboardView, ScoreRow, ScoreSummaryView

_SHOWN_ROWS = 60
_LENGTHS = ((Horizon.NEAR, 0.25), (Horizon.MAIN, 1), (Horizon.FAR, 3))  # as multiples of the main horizon
_GROUPINGS = (Grouping.MACHINE, Grouping.CODE, Grouping.VERSION)


class ScoreboardPanel:
    """The scores of the chosen period, by the chosen grouping."""

    def __init__(self, client: AsyncClient, hours: float) -> None:
        self._client = client
        self._days, self._by, self._horizon = 30, Grouping.MACHINE, Horizon.MAIN
        with html.div().classes("ac-tools"):
            period, periods = text("learning.scores.period"), _periods().items()
            chooser("period", period, periods, str(self._days), self._choose_period)
            groupings = [(one.value, _group_name(one)) for one in _GROUPINGS]
            chooser("group", text("learning.scores.group_by"), groupings, self._by.value, self._choose_grouping)
            horizons = [(one.value, text("learning.scores.hours", hours=hours * n)) for one, n in _LENGTHS]
            chooser(
                "horizon", text("learning.scores.horizon"), horizons, self._horizon.value, self._choose_horizon
            )
        self._place = html.div().classes("ac-stack")
        self._shown: ScoreboardView | None = None

    async def refresh(self) -> None:
        """Fetch the scores and redraw them if they changed."""
        until = (await self._client.health.status()).plant_time
        board = await self._client.scores.scoreboard(
            since=until - timedelta(days=self._days), until=until, by=self._by, horizon=self._horizon
        )
        if self._shown is not None and _without_times(board) == _without_times(self._shown):
            return
        self._shown = board
        self._place.clear()
        with self._place:
            _draw(board, self._by)
            draw_answers(board.answers)

    async def _choose_period(self, event: events.GenericEventArguments) -> None:
        self._days = int(event.args) if event.args in _periods() else self._days
        with show_api_errors():
            await self.refresh()

    async def _choose_grouping(self, event: events.GenericEventArguments) -> None:
        self._by = Grouping(event.args)
        with show_api_errors():
            await self.refresh()

    async def _choose_horizon(self, event: events.GenericEventArguments) -> None:
        self._horizon = Horizon(event.args)
        with show_api_errors():
            await self.refresh()


def _without_times(board: ScoreboardView) -> dict[str, Any]:
    return board.model_dump(exclude={"since", "until"})


def _draw(board: ScoreboardView, by: Grouping) -> None:
    total = board.total
    if total is None:
        empty_state(text("learning.scores.none"), text("learning.scores.none_help", count=board.pending))
        return
    model, persistence, base_rate = total.model, total.persistence, total.base_rate
    baselines = {
        "persistence": number(persistence.average_precision, 3),
        "base_rate": number(base_rate.average_precision, 3),
    }
    stats(
        {
            text("learning.scores.lift"): _times(total.lift_over_persistence),
            text("learning.scores.ap"): (
                number(model.average_precision, 3),
                text("learning.scores.ap_note", **baselines),
            ),
            text("learning.scores.brier"): (_signed(model.brier_skill), text("learning.scores.brier_note")),
            text("learning.scores.ece"): (percent(model.calibration_error), text("learning.scores.ece_note")),
            text("learning.scores.notifications"): (
                number(model.notifications_per_machine_day, 1),
                text(
                    "learning.scores.notifications_note",
                    right=percent(model.notification_precision),
                    announced=percent(model.onsets_announced),
                    lead=number(model.median_lead_minutes, 0),
                ),
            ),
            text("learning.scores.days"): (
                total.days,
                text("learning.scores.days_note", count=total.forecasts),
            ),
        }
    )
    html.p(_pending(board, total)).classes("small quiet")
    with html.div().classes("ac-calibration"):
        with html.div():
            html.h3(text("learning.scores.calibration"))
            html.p(text("learning.scores.calibration_help")).classes("small quiet")
            Chart(calibration(total), label=_calibration_label(total)).style("height: 22rem")
        with html.div():
            html.h3(text("learning.scores.by", group=_group_name(by)))
            _table(board, by)


def _table(board: ScoreboardView, by: Grouping) -> None:
    rows = sorted(board.rows, key=lambda row: -(row.metrics.model.positives if by is Grouping.CODE else 0))
    head = (
        _group_name(by).capitalize(),
        text("learning.scores.column.days"),
        text("learning.scores.column.ap"),
        text("learning.scores.column.ap_persistence"),
        text("learning.scores.column.ap_base_rate"),
        text("learning.scores.column.lift"),
        text("learning.scores.column.brier"),
        text("learning.scores.column.f1"),
        text("learning.scores.column.f1_persistence"),
    )
    table(
        head,
        [_row(row, by) for row in rows[:_SHOWN_ROWS]],
        numbers=range(1, len(head)),
        label=text("learning.scores.table_label", group=_group_name(by)),
    )
    if len(rows) > _SHOWN_ROWS:
        html.p(text("learning.scores.more", count=len(rows) - _SHOWN_ROWS)).classes("small quiet")


def _row(row: ScoreRow, by: Grouping) -> tuple[Cell, ...]:
    name = {
        Grouping.MACHINE: f"{row.site}/{row.machine}",
        Grouping.CODE: f"{row.code} {row.text}",
        Grouping.VERSION: row.model_version or NOTHING,
    }[by]
    scores = row.metrics
    return (
        name,
        scores.days,
        lambda: html.strong(number(scores.model.average_precision, 3)),
        number(scores.persistence.average_precision, 3),
        number(scores.base_rate.average_precision, 3),
        _times(scores.lift_over_persistence),
        _signed(scores.model.brier_skill),
        number(scores.model.f1, 3),
        number(scores.persistence.f1, 3),
    )


def calibration(total: ScoreSummaryView) -> dict[str, Any]:
    """Return a chart of the calibration curves of the model and the base rate, with the diagonal."""
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
        "legend": {
            "top": 0,
            "left": 0,
            "textStyle": {"color": "var(--ink)"},
            "data": [text("learning.scores.model"), text("learning.scores.base_rate")],
        },
        "tooltip": {"formatter": "@tip", "confine": True},
        "xAxis": {**axis, "name": text("learning.scores.forecast_axis"), "nameGap": 28},
        "yAxis": {**axis, "name": text("learning.scores.observed_axis"), "nameGap": 44},
        "series": [
            {
                "name": text("learning.scores.diagonal"),
                "type": "line",
                "data": [[0, 0], [1, 1]],
                "symbol": "none",
                "silent": True,
                "lineStyle": {"color": "var(--usual)", "type": "dashed", "width": 1},
            },
            _curve(text("learning.scores.model"), total.model.reliability, most, "var(--bar)", "circle"),
            _curve(
                text("learning.scores.base_rate"), total.base_rate.reliability, most, "var(--usual)", "diamond"
            ),
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
                "tip": text(
                    "learning.scores.tip",
                    series=name,
                    forecast=percent(one.predicted),
                    observed=percent(one.observed),
                    count=one.pairs,
                ),
            }
            for one in bins
        ],
    }


def _pending(board: ScoreboardView, total: ScoreSummaryView) -> str:
    pending = text("learning.scores.pending", pending=board.pending, revised=total.revision_count)
    if total.unobserved:
        pending = f"{pending} {text('learning.scores.unobserved', count=total.unobserved)}"
    return pending


def _calibration_label(total: ScoreSummaryView) -> str:
    values = ", ".join(
        text("learning.scores.calibration_value", forecast=percent(one.predicted), observed=percent(one.observed))
        for one in total.model.reliability
    )
    return text("learning.scores.calibration_label", values=values)


def _periods() -> dict[str, str]:
    return {
        "7": text("learning.scores.7d"),
        "30": text("learning.scores.30d"),
        "90": text("learning.scores.90d"),
    }


def _group_name(by: Grouping) -> str:
    return {
        Grouping.MACHINE: text("learning.group.machine"),
        Grouping.CODE: text("learning.group.code"),
        Grouping.VERSION: text("learning.group.version"),
    }[by]


def _times(lift: float | None) -> str:
    return NOTHING if lift is None else text("learning.scores.times", factor=f"{lift:.2f}")


def _signed(value: float | None) -> str:
    return NOTHING if value is None else f"{value:+.3f}"
