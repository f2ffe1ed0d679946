"""The learning page: enrolment, training jobs, versions, forgetting, replay memory and live accuracy."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nicegui import html

from service.page.changes import Topic
from service.page.components.actions import ActionRunner
from service.page.components.blocks import panel
from service.page.horizon import DEFAULT_HOURS, horizon_hours
from service.page.layout import PageContext, layout
from service.page.learning.actions import LearningActions
from service.page.learning.elements import JobBoard
from service.page.learning.enrol import Enrolment
from service.page.learning.forgetting import Forgetting
from service.page.learning.machines import draw_machines
from service.page.learning.memory import ReplayMemory
from service.page.learning.scoreboard import ScoreboardPanel
from service.page.learning.state import LearningState
from service.page.learning.versions import draw_versions
from service.page.texts import text
from wire.enums import Role

_TIME_LEFT_S, _UNREGISTERED_S, _SCORES_S = 10.0, 10.0, 60.0  # what changes without an event


async def learning(context: PageContext, *, site: str | None = None, machine: str | None = None) -> None:
    """Draw the page; ``site`` and ``machine`` fill the form."""
    anchors = {
        "jobs": text("learning.jobs.title"),
        "machines": text("learning.machines.title"),
        "versions": text("learning.versions.title"),
        "forgetting": text("learning.forgetting.title"),
        "memory": text("learning.memory.title"),
        "scores": text("learning.scores.title"),
    }
    if context.may(Role.ADMIN):
        anchors = {"enrol": text("learning.enrol.short")} | anchors
    hours = await horizon_hours(context) or DEFAULT_HOURS
    with layout(context, text("learning.title"), path="/learning", stylesheet="learning"):
        with html.div().classes("ac-head"):
            html.h1(text("learning.heading"))
            with html.nav(**{"aria-label": text("learning.jump")}).classes("ac-jump small"):
                for anchor, name in anchors.items():
                    html.a(name, href=f"#{anchor}")
        _LearningPage(context, hours, site=site, machine=machine)


@contextmanager
def _part(anchor: str, title: str, note: str = "") -> Iterator[None]:
    with html.div(id=anchor).classes("ac-anchor"), panel(title, note=note):
        yield


class _LearningPage:
    """One open page; each part is redrawn when its data changes."""

    def __init__(self, context: PageContext, hours: float, *, site: str | None, machine: str | None) -> None:
        client = context.client
        self._client, self._state = client, LearningState(client)
        self._parts, self._is_drawn = context.parts, False
        self._sent_jobs: list[dict[str, Any]] | None = None
        actions = LearningActions(client, ActionRunner())
        self._machine_actions = actions if context.may(Role.ADMIN) else None
        self._version_actions = actions if context.may(Role.ADMIN, everywhere=True) else None
        with html.div().classes("ac-grid"):
            with html.div(id="enrol").classes("ac-anchor") as enrol, panel(text("learning.enrol.title")):
                self._enrolment = Enrolment(client, site=site, machine=machine)
            enrol.set_visibility(context.may(Role.ADMIN))
            with _part("jobs", text("learning.jobs.title")):
                self._jobs = JobBoard()
                self._jobs.on("ready", self._send_jobs_again)
        with _part("machines", text("learning.machines.title")):
            self._machines = html.div()
        with _part("versions", text("learning.versions.title"), text("learning.versions.note")):
            self._versions = html.div().classes("ac-stack")
        with _part("forgetting", text("learning.forgetting.title"), text("learning.forgetting.note")):
            self._forgetting = Forgetting()
        with _part("memory", text("learning.memory.title"), text("learning.memory.note")):
            self._memory = ReplayMemory()
        with _part("scores", text("learning.scores.title"), text("learning.scores.note")):
            self._scores = ScoreboardPanel(client, hours)
        self._jobs_part = context.parts.add(
            self._refresh_jobs, Topic.JOBS, Topic.RESOURCES, interval_s=_TIME_LEFT_S
        )
        topics = (Topic.JOBS, Topic.MODEL, Topic.RESOURCES)
        context.parts.add(self._refresh_learned, *topics, pause_s=2.0, interval_s=_UNREGISTERED_S)
        context.parts.add(self._scores.refresh, Topic.MODEL, pause_s=10.0, interval_s=_SCORES_S)

    async def _refresh_jobs(self) -> None:
        await self._state.fetch_jobs()
        jobs = self._state.jobs_json()
        if jobs != self._sent_jobs:
            self._sent_jobs = jobs
            self._jobs.load(jobs)
            self._enrolment.watch(jobs)

    async def _refresh_learned(self) -> None:
        first, self._is_drawn = not self._is_drawn, True
        if await self._state.fetch_fleet() or first:
            self._enrolment.show_unregistered(self._state.fleet.unregistered)
            self._machines.clear()
            with self._machines:
                draw_machines(self._state.fleet.machines, self._machine_actions)
        if await self._state.fetch_models() or first:
            await self._draw_models()

    async def _draw_models(self) -> None:
        self._versions.clear()
        with self._versions:
            draw_versions(self._state, self._version_actions)
        champion = self._state.champion
        trained = {one.version: one.machines for one in self._state.models}
        self._forgetting.show(await self._client.models.get(champion.version) if champion else None, trained)
        self._memory.show(await self._client.memory.get())

    def _send_jobs_again(self) -> None:
        """Send the jobs to a component that the browser has just loaded or reloaded."""
        self._sent_jobs = None
        self._parts.trigger(self._jobs_part)
