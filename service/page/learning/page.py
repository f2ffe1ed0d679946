"""The learning page: enrol machines, watch them being learned, keep or take back what was learned, judge it."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from nicegui import html, ui

from alarmcast import AlarmcastError
from service.page.components.blocks import panel
from service.page.layout import PageContext, layout
from service.page.learning.actions import Deeds
from service.page.learning.elements import JobBoard
from service.page.learning.enrol import Enrolment
from service.page.learning.forgetting import Forgetting
from service.page.learning.machines import draw_machines
from service.page.learning.memory import MemoryPart
from service.page.learning.scoreboard import Board
from service.page.learning.state import LearningState
from service.page.learning.versions import draw_versions
from wire.enums import Role

_PULSE = 1.0  # seconds between two looks at the jobs
_FLEET_EVERY, _BOARD_EVERY = 5, 60  # pulses
_PARTS = {
    "enrol": "Enrol",
    "jobs": "Jobs",
    "machines": "Machines",
    "versions": "Versions",
    "forgetting": "Forgetting",
    "memory": "Memory",
    "scores": "Scoreboard",
}


async def learning(told: PageContext, *, site: str | None = None, machine: str | None = None) -> None:
    """Draw the page; ``site`` and ``machine`` fill the form."""
    with layout(told, "Learning", path="/learning", stylesheet="learning"):
        with html.div().classes("ac-head"):
            html.h1("What the model has learned, and how well")
            with html.nav().classes("ac-jump small").props('aria-label="On this page"'):
                for anchor, name in _PARTS.items():
                    if anchor != "enrol" or told.may(Role.ADMIN):
                        html.a(name, href=f"#{anchor}")
        Page(told, site=site, machine=machine)


class May(NamedTuple):
    """What of this page the visitor may change."""

    machines: bool
    versions: bool  # of the whole fleet, so of all sites only


@dataclass
class Page:
    """The parts of one open page, renewed as what they show changes."""

    told: PageContext
    site: str | None
    machine: str | None
    _pulses: int = field(default=0, init=False)
    _told_jobs: list[dict[str, Any]] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        client = self.told.client
        self._seen = LearningState(client)
        self._trouble = html.p().classes("ac-bad").props('role="status"')
        self._trouble.set_visibility(False)
        self._deeds = Deeds(client, self._look_at_all)
        self._may = May(machines=self.told.may(Role.ADMIN), versions=self.told.may(Role.ADMIN, everywhere=True))
        with html.div().classes("ac-grid"):
            with html.div(id="enrol").classes("ac-anchor") as enrol, panel("Enrol a machine"):
                self._enrolment = Enrolment(client, site=self.site, machine=self.machine)
            enrol.set_visibility(self.told.may(Role.ADMIN))
            with (
                html.div(id="jobs").classes("ac-anchor"),
                panel("Being learned", note="stage, loss and time left"),
            ):
                self._jobs = JobBoard()
                self._jobs.on("ready", self._tell_again)
        with html.div(id="machines").classes("ac-anchor"), panel("Machines"):
            self._machines = html.div()
        with (
            html.div(id="versions").classes("ac-anchor"),
            panel("Versions", note="each is kept with its memory, so there is always a way back"),
        ):
            self._versions = html.div().classes("ac-stack")
        with (
            html.div(id="forgetting").classes("ac-anchor"),
            panel("Forgetting", note="is what was learned first still known?"),
        ):
            self._forgetting = Forgetting()
        with (
            html.div(id="memory").classes("ac-anchor"),
            panel("Memory", note="the windows of earlier machines that every new one is learned with"),
        ):
            self._memory = MemoryPart()
        with html.div(id="scores").classes("ac-anchor"), panel("Scoreboard", note="of forecasts that were served"):
            self._board = Board(client)
        ui.timer(_PULSE, self._pulse)

    async def _pulse(self) -> None:
        """Look at jobs every time, at the rest when a job moved on or now and then."""
        try:
            moved = await self._seen.look_at_jobs()
            if moved or self._pulses % _FLEET_EVERY == 0:
                await self._look_at_the_rest(first=self._pulses == 0)
            self._tell_jobs()
            if self._pulses % _BOARD_EVERY == 0:
                await self._board.renew()
        except AlarmcastError as error:
            self._complain(f"This page is not up to date: {error}")
        else:
            self._complain("")
        self._pulses += 1

    async def _look_at_all(self) -> None:
        await self._seen.look_at_jobs()
        await self._look_at_the_rest()
        self._tell_jobs()

    async def _look_at_the_rest(self, *, first: bool = False) -> None:
        if await self._seen.look_at_fleet() or first:
            self._enrolment.offer(self._seen.fleet.unregistered)
            self._machines.clear()
            with self._machines:
                draw_machines(self._seen.fleet.machines, self._deeds if self._may.machines else None)
        if await self._seen.look_at_models() or first:
            await self._draw_learned()

    async def _draw_learned(self) -> None:
        self._versions.clear()
        with self._versions:
            draw_versions(self._seen, self._deeds if self._may.versions else None)
        champion, client = self._seen.champion, self.told.client
        learned = {one.version: one.machines for one in self._seen.models}
        self._forgetting.show(await client.models.get(champion.version) if champion else None, learned)
        self._memory.show(await client.memory.get())

    def _tell_jobs(self) -> None:
        jobs = self._seen.told_jobs()
        if jobs != self._told_jobs:  # most seconds bring nothing new
            self._told_jobs = jobs
            self._jobs.load(jobs)
            self._enrolment.watch(jobs)

    def _tell_again(self) -> None:
        """Tell the browser the jobs once more: what it had is gone, or it was not there yet."""
        self._told_jobs = None

    def _complain(self, words: str) -> None:
        self._trouble.text = words
        self._trouble.set_visibility(bool(words))
