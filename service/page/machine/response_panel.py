"""What to do about an alarm, the operator's answer to it, and what others answered last."""

from dataclasses import dataclass, field

from nicegui.events import GenericEventArguments

from alarmcast import NotFound
from service.page.layout import PageContext, show_api_errors
from service.page.machine.elements import ResponseView
from wire.enums import Answer, Role
from wire.forecasts import Forecast
from wire.rest.catalogue import NO_RESPONSE, AlarmResponse

_SHOWN_ANSWERS = 5
_ENTRY_S = 30.0


@dataclass
class ResponsePanel:
    """Shows one alarm at a time; an answer given within the last horizon can be changed."""

    context: PageContext
    machine: str
    zone: str
    _view: ResponseView = field(init=False)
    _shown: tuple[int, Forecast] | None = None

    def draw(self) -> None:
        """Draw it empty."""
        self._view = ResponseView()
        self._view.on("answer", self._answer)

    def hide(self) -> None:
        """Show nothing while another alarm is loaded, so that no answer goes to the previous one."""
        self._view.load({"code": None})

    async def show(self, code: int, forecast: Forecast) -> None:
        """Fetch and show an alarm of a forecast."""
        client, cache = self.context.client, self.context.cache
        self._shown = (code, forecast)
        response = await cache.get_or_fetch(("response", code), lambda: self._response(code), seconds=_ENTRY_S)
        page = await cache.get_or_fetch(
            ("answers", code), lambda: client.answers.page(code=code, limit=_SHOWN_ANSWERS)
        )
        site, _, name = self.machine.partition("/")
        mine = await client.answers.page(code=code, site=site, machine=name, limit=1)
        if self._shown[0] != code or self._view.is_deleted:
            return  # another alarm was selected during the requests, or the machine was retired
        valid_from = forecast.as_of - (forecast.horizon_end - forecast.as_of)
        given = next((one.answer for one in mine.answers if one.at > valid_from), None)
        self._view.load(
            {
                "code": code,
                "alarm": next((alarm.text for alarm in forecast.alarms if alarm.code == code), ""),
                "response": response.model_dump(),
                "answers": [one.model_dump(mode="json") for one in page.answers],
                "given": given,
                "may_answer": self.context.may(Role.OPERATOR),
                "zone": self.zone,
            }
        )

    async def _response(self, code: int) -> AlarmResponse:
        try:
            return (await self.context.client.catalogue.entry(code)).response
        except NotFound:
            return NO_RESPONSE

    async def _answer(self, event: GenericEventArguments) -> None:
        sent = event.args
        with show_api_errors(self._view.refuse):
            await self.context.client.answers.answer_alarm(
                self.machine, sent["code"], Answer(sent["answer"]), note=sent["note"]
            )
            self._view.done()
            self.context.cache.invalidate()
            if self._shown is not None and self._shown[0] == sent["code"]:
                await self.show(*self._shown)
