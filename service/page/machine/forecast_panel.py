"""The forecast of a machine: every forecast alarm, and the contributing factors of the selected one."""

from dataclasses import dataclass, field
from datetime import datetime
from zoneinfo import ZoneInfo

from nicegui import html
from nicegui.events import GenericEventArguments

from alarmcast import Gone, Rejected, Unavailable
from service.page.components.blocks import empty_state, panel
from service.page.layout import PageContext, show_api_errors
from service.page.machine.elements import AlarmActions, FactorList, ForecastList
from service.page.machine.response_panel import ResponsePanel
from service.page.texts import text
from wire.enums import Role
from wire.forecasts import Forecast
from wire.rest.suppression import AcknowledgementView, ShelvedAlarmView

_BASIS = {"reading", "baseline_samples", "model_version", "as_of"}


@dataclass
class ForecastPanel:
    """Forecast, factors and actions; a refresh keeps the selected alarm."""

    context: PageContext
    machine: str
    zone: str
    selected: int | None = None
    forecast: Forecast | None = None
    shelves: list[ShelvedAlarmView] = field(default_factory=list)
    acknowledgements: list[AcknowledgementView] = field(default_factory=list)
    removed: bool = False  # the machine is retired
    _error: str = ""

    def draw(self, hours: float | None) -> None:
        """Draw both panels; they load their data once the browser is ready."""
        title = text("machine.forecast.hours", count=f"{hours:g}") if hours else text("machine.forecast")
        with html.div().classes("ac-forecast") as self._container:
            with panel(title, note=text("machine.forecast.note")):
                self._none = html.div()
                self._list = ForecastList()
            with panel(text("machine.factors")) as self._factors_panel:
                self._response = ResponsePanel(self.context, self.machine, self.zone)
                self._response.draw()
                self._factors = FactorList()
                self._actions = AlarmActions()
        self._actions.set_visibility(self.context.may(Role.OPERATOR))
        self._list.on("selected", self._select)
        self._actions.on("acknowledge", self._acknowledge)
        self._actions.on("shelve", self._shelve)
        self._actions.on("unshelve", self._unshelve)

    def remove(self) -> None:
        """Remove the panels of a retired machine."""
        if not self.removed:
            self.removed, self.forecast = True, None
            self._container.delete()

    async def refresh(self) -> None:
        """Fetch the newest forecast and the factors of the selected alarm."""
        if self.removed:
            return
        try:
            forecast = await self.context.client.forecasts.get(self.machine)
        except (Gone, Unavailable) as error:
            self._show_error(str(error))
            return
        if self.removed:
            return  # during the request
        self.forecast = forecast
        self._show_error("")
        if self.selected is None and self.forecast.alarms:
            self.selected = self.forecast.alarms[0].code
        self._show()
        await self._refresh_factors()

    async def refresh_suppression(self) -> None:
        """Fetch what is shelved or acknowledged."""
        if self.removed:
            return
        shelves = await self.context.client.shelves.list_for(self.machine)
        acknowledged = await self.context.client.acknowledgements.list_for(self.machine, active=True)
        self.shelves, self.acknowledgements = shelves.shelves, acknowledged.acknowledgements
        self._show()

    async def _refresh_factors(self) -> None:
        if self.selected is None:
            return
        if self.forecast is not None:
            await self._response.show(self.selected, self.forecast)
        try:
            explanation = await self.context.client.forecasts.explanation(self.machine, code=self.selected)
        except (Gone, Rejected, Unavailable):
            return  # the active version may have changed; the next forecast brings its factors
        for alarm in () if self.removed else explanation.explanations:
            basis = explanation.model_dump(mode="json", include=_BASIS)
            self._factors.load({"alarm": alarm.model_dump(mode="json"), "zone": self.zone, **basis})

    def _show(self) -> None:
        if self.forecast is None or self.removed:
            return
        forecast = self.forecast.model_dump(mode="json")
        shelves = [shelf.model_dump(mode="json") for shelf in self.shelves]
        acknowledgements = [one.model_dump(mode="json") for one in self.acknowledgements]
        self._list.load(
            {
                "forecast": forecast,
                "zone": self.zone,
                "shelves": shelves,
                "acknowledgements": acknowledgements,
                "selected": self.selected,
            }
        )
        self._actions.load(
            {
                "alarm": _by_code(forecast["alarms"], self.selected),
                "shelf": _by_code(shelves, self.selected),
                "acknowledgement": _by_code(acknowledgements, self.selected),
                "zone": self.zone,
            }
        )

    def _show_error(self, error: str) -> None:
        if self.removed or error == self._error:
            return
        self._error = error
        for component in (self._list, self._factors_panel):
            component.set_visibility(not error)
        self._none.clear()
        if error:
            with self._none:
                empty_state(text("machine.forecast.none"), error)

    async def _select(self, event: GenericEventArguments) -> None:
        self.selected = int(event.args)
        self._response.hide()
        self._show()
        with show_api_errors():
            await self._refresh_factors()

    async def _acknowledge(self, event: GenericEventArguments) -> None:
        values = event.args
        with show_api_errors(self._actions.refuse):
            await self.context.client.acknowledgements.acknowledge(
                self.machine, values["code"], note=values["reason"]
            )
            self._actions.done()
            await self.refresh_suppression()

    async def _shelve(self, event: GenericEventArguments) -> None:
        values = event.args
        until = values.get("until")
        with show_api_errors(self._actions.refuse):
            await self.context.client.shelves.shelve(
                self.machine,
                values["code"],
                minutes=values.get("minutes"),
                until=None if until is None else datetime.fromisoformat(until).replace(tzinfo=ZoneInfo(self.zone)),
                reason=values["reason"],
            )
            self._actions.done()
            await self.refresh_suppression()

    async def _unshelve(self, event: GenericEventArguments) -> None:
        with show_api_errors():
            await self.context.client.shelves.unshelve(self.machine, int(event.args))
            await self.refresh_suppression()


def _by_code(rows: list[dict[str, object]], code: int | None) -> dict[str, object] | None:
    return next((row for row in rows if row["code"] == code), None)
