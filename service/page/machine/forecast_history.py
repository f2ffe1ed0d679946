"""The accuracy of past forecasts: each one with what occurred, and the score by day."""

from dataclasses import dataclass

from nicegui import html, ui
from nicegui.events import GenericEventArguments

from service.page.components.blocks import empty_state, panel
from service.page.components.elements import Chart
from service.page.components.forms import chooser
from service.page.layout import PageContext, show_api_errors
from service.page.machine.elements import ForecastGrid
from service.page.machine.score_chart import METRICS, options, summary
from service.page.texts import text
from wire.enums import Grouping
from wire.rest.scores import ScoreboardView

_PAGE_SIZE = 200  # two days of forecasts every 15 minutes


@dataclass
class ForecastHistoryPanel:
    """Past forecasts as a grid, and a metric by day as a chart."""

    context: PageContext
    machine: str
    zone: str
    metric: str = METRICS[0]
    board: ScoreboardView | None = None

    def draw(self) -> None:
        """Draw the grid of past forecasts."""
        with panel(text("machine.history"), note=text("machine.history.note")):
            self._empty = html.div()
            self._grid = ForecastGrid()
        self._grid.on("older", self._load_older)

    def draw_scores(self) -> None:
        """Draw the chart by day."""
        with panel(text("machine.scores"), note=text("machine.scores.note")):
            with html.div().classes("ac-tools"):
                metrics = [(name, text(f"machine.scores.{name}")) for name in METRICS]
                chooser("metric", text("machine.scores.metric"), metrics, self.metric, self._choose)
            self._help = ui.label("").classes("quiet small")
            self._no_scores = html.div()
            self._chart = Chart({}, label=text("machine.scores"), zone="UTC")
            self._chart.set_visibility(False)

    async def refresh(self) -> None:
        """Fetch the newest past forecasts and the scores."""
        await self._load(None)
        site, name = self.machine.split("/")
        self.board = await self.context.client.scores.scoreboard(site=site, machine=name, by=Grouping.DAY)
        self._show()

    async def _load(self, cursor: str | None) -> None:
        page = await self.context.client.scores.page(
            self.machine, limit=_PAGE_SIZE, cursor=cursor, rejections=False
        )
        forecasts = [forecast.model_dump(mode="json") for forecast in page.forecasts]
        self._empty.clear()
        if not forecasts and cursor is None:
            with self._empty:
                empty_state(text("machine.history.empty"), text("machine.history.empty.help"))
        older = cursor is not None
        self._grid.load({"forecasts": forecasts, "next": page.next, "zone": self.zone, "older": older})

    def _show(self) -> None:
        if self.board is None:
            return
        self._help.text = text(f"machine.scores.{self.metric}.help")
        self._no_scores.clear()
        self._chart.set_visibility(bool(self.board.rows))
        if self.board.rows:
            self._chart.show(options(self.board, self.metric), label=summary(self.board, self.metric))
        else:
            with self._no_scores:
                empty_state(text("machine.scores.empty"), text("machine.scores.empty.help"))

    async def _load_older(self, event: GenericEventArguments) -> None:
        with show_api_errors():
            await self._load(str(event.args))

    def _choose(self, event: GenericEventArguments) -> None:
        if event.args in METRICS:
            self.metric = event.args
            self._show()
