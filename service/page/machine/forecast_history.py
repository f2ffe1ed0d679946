"""Whether the forecasts were right: each one beside what happened, and the score day by day."""

from dataclasses import dataclass

from nicegui import html, ui
from nicegui.events import GenericEventArguments

from service.page.components.blocks import empty_state, panel
from service.page.components.elements import Chart
from service.page.layout import PageContext, show_api_errors
from service.page.machine.elements import PastGrid
from service.page.machine.score_chart import MEASURES, options, spoken
from wire.enums import Grouping
from wire.rest.scores import ScoreboardView

_AT_ONCE = 200  # two days of forecasts every quarter of an hour


@dataclass
class ForecastHistoryPanel:
    """Past forecasts as a grid, and figures as a line over days."""

    told: PageContext
    machine: str
    zone: str
    measure: str = "f1"
    board: ScoreboardView | None = None

    def draw(self) -> None:
        """Draw the grid of past forecasts."""
        with panel("Was it right?", note="forecasts whose horizon has passed, newest first"):
            self._waits = html.div()
            self._grid = PastGrid()
        self._grid.on("ready", self.renew)
        self._grid.on("older", self._older)

    def draw_scores(self) -> None:
        """Draw the figures over days."""
        with panel("Score over time", note="by day in UTC, the last 30"):
            with html.div().classes("ac-tools"), html.label("Figure"), html.select() as measures:
                for name, measure in MEASURES.items():
                    html.option(measure.title, value=name)
            self._reading = ui.label(MEASURES[self.measure].reading).classes("quiet small")
            self._none = html.div()
            self._chart = Chart({}, label="Score by day", zone="UTC")
            self._chart.set_visibility(False)
        measures.on("change", self._choose, js_handler="(event) => emit(event.target.value)")

    async def renew(self) -> None:
        """Ask for the newest past forecasts and for the figures."""
        await self._renew_past(None)
        site, name = self.machine.split("/")
        self.board = await self.told.client.scores.scoreboard(site=site, machine=name, by=Grouping.DAY)
        self._show()

    async def _renew_past(self, cursor: str | None) -> None:
        page = await self.told.client.scores.page(self.machine, limit=_AT_ONCE, cursor=cursor, rejections=False)
        moments = [one.model_dump(mode="json") for one in page.forecasts]
        self._waits.clear()
        if not moments and cursor is None:
            with self._waits:
                empty_state(
                    "Nothing to judge yet",
                    "A forecast can be judged once the hours it spoke of have passed and the machine was heard "
                    "after them; the first scores come about eight hours after the first forecast.",
                )
        self._grid.load({"moments": moments, "next": page.next, "zone": self.zone, "older": cursor is not None})

    def _show(self) -> None:
        board = self.board
        if board is None:
            return
        measure = MEASURES[self.measure]
        self._reading.text = measure.reading
        self._none.clear()
        self._chart.set_visibility(bool(board.rows))
        if board.rows:
            self._chart.show(options(board, self.measure), label=spoken(board, self.measure))
        else:
            with self._none:
                empty_state("No scores yet", "There is a point for every day on which forecasts came due.")

    async def _older(self, event: GenericEventArguments) -> None:
        with show_api_errors():
            await self._renew_past(str(event.args))

    def _choose(self, event: GenericEventArguments) -> None:
        if event.args in MEASURES:
            self.measure = event.args
            self._show()
