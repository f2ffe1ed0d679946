"""What the machine will raise next: every forecast alarm as a bar, and why for the one that is chosen."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from nicegui import html
from nicegui.events import GenericEventArguments

from alarmcast import Gone, Rejected, Unavailable
from service.page.components.blocks import empty_state, panel
from service.page.layout import PageContext, show_api_errors
from service.page.machine.elements import Deeds, ForecastBars, WhyBars
from wire.enums import Role
from wire.forecasts import Forecast
from wire.rest.suppression import AcknowledgementView, ShelvedAlarmView


@dataclass
class ForecastPanel:
    """Forecast, reasons and deeds; the chosen alarm stays chosen whatever is renewed."""

    told: PageContext
    machine: str
    zone: str
    chosen: int | None = None
    forecast: Forecast | None = None
    shelves: list[ShelvedAlarmView] = field(default_factory=list)
    known: list[AcknowledgementView] = field(default_factory=list)
    left: bool = False  # the machine has been let go: nothing is asked or shown any more
    _why_not: str = ""

    def draw(self) -> None:
        """Draw both panels; they fill themselves once the browser is there."""
        with html.div().classes("ac-outlook") as self._place:
            with panel("What comes next", note="choose an alarm to see why"):
                self._none = html.div()
                self._bars = ForecastBars()
            with panel("Why"):
                self._why = WhyBars()
                self._deeds = Deeds()
        self._deeds.set_visibility(self.told.may(Role.OPERATOR))
        self._bars.on("chosen", self._choose)
        self._deeds.on("ready", self.renew_all)
        self._deeds.on("acknowledge", self._acknowledge)
        self._deeds.on("shelve", self._shelve)
        self._deeds.on("unshelve", self._unshelve)

    def leave(self) -> None:
        """Take it all away: the machine has been let go."""
        if not self.left:
            self.left, self.forecast = True, None
            self._place.delete()

    async def renew_all(self) -> None:
        """Ask for everything."""
        await self.renew_hush()
        await self.renew()

    async def renew(self) -> None:
        """Ask for the newest forecast, and for its reasons where an alarm is chosen."""
        if self.left:
            return
        try:
            forecast = await self.told.client.forecasts.get(self.machine)
        except (Gone, Unavailable) as error:
            self._say_why_not(str(error))
            return
        if self.left:
            return  # meanwhile
        self.forecast = forecast
        self._say_why_not("")
        if self.chosen is None and self.forecast.alarms:
            self.chosen = self.forecast.alarms[0].code
        self._show()
        await self._renew_why()

    async def renew_hush(self) -> None:
        """Ask what is shelved or known."""
        if self.left:
            return
        shelves = await self.told.client.shelves.list_for(self.machine)
        known = await self.told.client.acknowledgements.list_for(self.machine, active=True)
        self.shelves, self.known = shelves.shelves, known.acknowledgements

    async def _renew_why(self) -> None:
        if self.chosen is None:
            return
        try:
            why = await self.told.client.forecasts.explanation(self.machine, code=self.chosen)
        except (Gone, Rejected, Unavailable):
            return  # the version that serves may have changed in between; the next forecast brings its reasons
        for reason in () if self.left else why.explanations:
            basis = why.model_dump(mode="json", include={"reading", "baseline_samples", "model_version", "as_of"})
            self._why.load({"reason": reason.model_dump(mode="json"), "zone": self.zone, **basis})

    def _show(self) -> None:
        if self.forecast is None or self.left:
            return
        shelves = [one.model_dump(mode="json") for one in self.shelves]
        known = [one.model_dump(mode="json") for one in self.known]
        told: dict[str, Any] = {"zone": self.zone, "shelves": shelves, "known_of": known, "chosen": self.chosen}
        self._bars.load({"forecast": self.forecast.model_dump(mode="json"), **told})
        alarm = next((one for one in self.forecast.alarms if one.code == self.chosen), None)
        self._deeds.load(
            {
                "alarm": alarm and alarm.model_dump(mode="json"),
                "shelf": next((one for one in shelves if one["code"] == self.chosen), None),
                "known": next((one for one in known if one["code"] == self.chosen), None),
                "zone": self.zone,
            }
        )

    def _say_why_not(self, words: str) -> None:
        if self.left or words == self._why_not:
            return
        self._why_not = words
        for part in (self._bars, self._why):
            part.set_visibility(not words)
        self._deeds.set_visibility(not words and self.told.may(Role.OPERATOR))
        self._none.clear()
        if words:
            with self._none:
                empty_state("No forecast", words)

    async def _choose(self, event: GenericEventArguments) -> None:
        self.chosen = int(event.args)
        self._show()
        with show_api_errors():
            await self._renew_why()

    async def _acknowledge(self, event: GenericEventArguments) -> None:
        asked = event.args
        with show_api_errors(self._deeds.refuse):
            await self.told.client.acknowledgements.acknowledge(self.machine, asked["code"], note=asked["reason"])
            self._deeds.done()
            await self.renew_hush()
        self._show()

    async def _shelve(self, event: GenericEventArguments) -> None:
        asked = event.args
        until = asked.get("until")
        with show_api_errors(self._deeds.refuse):
            await self.told.client.shelves.shelve(
                self.machine,
                asked["code"],
                minutes=asked.get("minutes"),
                until=None if until is None else datetime.fromisoformat(until).replace(tzinfo=ZoneInfo(self.zone)),
                reason=asked["reason"],
            )
            self._deeds.done()
            await self.renew_hush()
        self._show()

    async def _unshelve(self, event: GenericEventArguments) -> None:
        with show_api_errors():
            await self.told.client.shelves.unshelve(self.machine, int(event.args))
            await self.renew_hush()
        self._show()
