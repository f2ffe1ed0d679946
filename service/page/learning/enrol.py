"""Enrolment from the form: the wish, the past, and the way to live."""

import asyncio
from typing import Any
from zoneinfo import available_timezones

from nicegui import events, html

from alarmcast import AlarmcastError, ApiError, AsyncClient
from service.page.learning.elements import EnrolForm
from wire.identity import MachineId
from wire.rest.machines import UnregisteredMachineView

_PULSE = 0.5  # seconds between two looks at a file that is being stored
_MOST_KNOCKS = 8


class Enrolment:
    """The form and those who knock."""

    def __init__(self, client: AsyncClient, *, site: str | None, machine: str | None) -> None:
        self._client = client
        self._storing = False
        self._knocks = html.div()
        self._form = EnrolForm(zones=sorted(available_timezones()), site=site, machine=machine)
        self._form.on("enrol", self._enrol)
        self._form.on("storing", self._follow_storing)
        self._form.on("stored", self._stored)

    def watch(self, jobs: list[dict[str, Any]]) -> None:
        """Let the form show how far its machine is."""
        self._form.watch(jobs)

    def offer(self, knocking: list[UnregisteredMachineView]) -> None:
        """Offer those who speak without being enrolled."""
        self._knocks.clear()
        if not knocking:
            return
        with self._knocks, html.div().classes("ac-warn"):
            html.p("Heard, but not enrolled. Their agents keep what they have to say until they are.")
            with html.div().classes("ac-buttons"):
                for one in knocking[:_MOST_KNOCKS]:
                    self._offer(one)
                if len(knocking) > _MOST_KNOCKS:
                    html.span(f"and {len(knocking) - _MOST_KNOCKS} more").classes("quiet")

    def _offer(self, one: UnregisteredMachineView) -> None:
        button = html.button(f"Enrol {one.site}/{one.machine}", type="button").classes("ac-button")
        button.on("click", lambda: self._form.fill(one.site, one.machine))

    async def _enrol(self, event: events.GenericEventArguments) -> None:
        wish: dict[str, Any] = event.args
        try:
            enrolled = await self._client.enrolment.enrol(
                MachineId(wish["site"], wish["machine"]),
                name=wish["name"],
                time_zone=wish["time_zone"],
                catalogue=wish["catalogue"],
            )
        except ApiError as error:
            self._form.complain(error.detail, [one.model_dump() for one in error.errors])
        except AlarmcastError as error:
            self._form.complain(str(error), [])
        else:
            self._form.accept(enrolled.model_dump(mode="json"))

    async def _follow_storing(self, event: events.GenericEventArguments) -> None:
        self._storing = True
        while self._storing:
            try:
                self._form.store((await self._client.enrolment.history(event.args["key"])).model_dump(mode="json"))
            except AlarmcastError:
                return  # the answer to the upload itself says what went wrong
            await asyncio.sleep(_PULSE)

    def _stored(self) -> None:
        self._storing = False
