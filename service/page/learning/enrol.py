"""Enrolment: the form, the import of the alarm history, and machines that publish without being enrolled."""

import asyncio
from typing import Any
from zoneinfo import available_timezones

from nicegui import events, html

from alarmcast import AlarmcastError, ApiError, AsyncClient
from service.page.learning.elements import EnrolForm
from service.page.texts import text
from wire.identity import MachineId
from wire.rest.machines import UnregisteredMachineView

_IMPORT_POLL_S = 0.5
_SHOWN_UNREGISTERED = 8


class Enrolment:
    """The form, and a button for each unregistered machine."""

    def __init__(self, client: AsyncClient, *, site: str | None, machine: str | None) -> None:
        self._client = client
        self._importing = False
        self._unregistered = html.div()
        self._form = EnrolForm(zones=sorted(available_timezones()), site=site, machine=machine)
        self._form.on("enrol", self._enrol)
        self._form.on("importing", self._follow_import)
        self._form.on("imported", self._end_import)

    def watch(self, jobs: list[dict[str, Any]]) -> None:
        """Show the progress of the machine's job in the form."""
        self._form.watch(jobs)

    def show_unregistered(self, machines: list[UnregisteredMachineView]) -> None:
        """Show machines that publish without being enrolled."""
        self._unregistered.clear()
        if not machines:
            return
        with self._unregistered, html.div().classes("ac-warn"):
            html.p(text("learning.unregistered.help"))
            with html.div().classes("ac-buttons"):
                for one in machines[:_SHOWN_UNREGISTERED]:
                    self._enrol_button(one)
                if len(machines) > _SHOWN_UNREGISTERED:
                    more = text("learning.unregistered.more", count=len(machines) - _SHOWN_UNREGISTERED)
                    html.span(more).classes("quiet")

    def _enrol_button(self, one: UnregisteredMachineView) -> None:
        title = text("learning.unregistered.enrol", machine=f"{one.site}/{one.machine}")
        button = html.button(title, type="button").classes("ac-button")
        button.on("click", lambda: self._form.fill(one.site, one.machine))

    async def _enrol(self, event: events.GenericEventArguments) -> None:
        values: dict[str, Any] = event.args
        try:
            enrolled = await self._client.enrolment.enrol(
                MachineId(values["site"], values["machine"]),
                name=values["name"],
                time_zone=values["time_zone"],
                catalogue=values["catalogue"],
            )
        except ApiError as error:
            self._form.refuse(error.detail, [one.model_dump() for one in error.errors])
        except AlarmcastError as error:
            self._form.refuse(str(error), [])
        else:
            self._form.accept(enrolled.model_dump(mode="json"))

    async def _follow_import(self, event: events.GenericEventArguments) -> None:
        self._importing = True
        while self._importing:
            try:
                progress = await self._client.enrolment.history(event.args["key"])
            except AlarmcastError:
                return  # the response to the upload shows the error
            self._form.show_import(progress.model_dump(mode="json"))
            await asyncio.sleep(_IMPORT_POLL_S)

    def _end_import(self) -> None:
        self._importing = False
