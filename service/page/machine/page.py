"""Composes the machine's page and keeps it up to date, part by part."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from nicegui import background_tasks, html, ui

from alarmcast import AlarmcastError, NotFound, Rejected
from service.page.components.blocks import machine_title
from service.page.layout import PageContext, layout, subscribe
from service.page.machine.elements import MachineHead
from service.page.machine.forecast_history import ForecastHistoryPanel
from service.page.machine.forecast_panel import ForecastPanel
from service.page.machine.gaps import Gaps
from service.page.machine.not_found import missing
from service.page.machine.timeline import Timeline
from wire.enums import MachineState
from wire.rest.machines import MachineView


@dataclass
class _Turn:
    """A part of the page and how many pulses of the fleet it waits at least before it is renewed."""

    renew: Callable[[], Awaitable[None]]
    every: int
    waited: int = 0
    due: bool = False


@dataclass
class _Keeper:
    """Renews parts when their machine has changed, one after another and never twice at once."""

    turns: list[_Turn]
    busy: bool = False

    def pulse(self, *, changed: bool) -> bool:
        """Count a pulse; return whether something is to be renewed now."""
        for turn in self.turns:
            turn.waited += 1
            turn.due = turn.due or changed
        return not self.busy and any(self._ready(turn) for turn in self.turns)

    async def renew(self) -> None:
        """Renew what is due; what cannot be had stays as it is, and the frame says when nothing comes any more."""
        self.busy = True
        try:
            for turn in self.turns:
                if self._ready(turn):
                    turn.waited, turn.due = 0, False
                    await turn.renew()
        except AlarmcastError:
            pass
        finally:
            self.busy = False

    @staticmethod
    def _ready(turn: _Turn) -> bool:
        return turn.due and turn.waited >= turn.every


@dataclass
class _MachinePage:
    """One open page about one machine."""

    told: PageContext
    view: MachineView
    card: dict[str, Any] | None = None
    now: str | None = None
    left: bool = False  # the fleet says that it has gone; the machine itself is still to be asked
    keeper: _Keeper = field(init=False)

    def __post_init__(self) -> None:
        self.key = f"{self.view.site}/{self.view.machine}"
        place = (self.told, self.key, self.view.time_zone)
        self.outlook, self.timeline = ForecastPanel(*place), Timeline(*place)
        self.record, self.gaps = ForecastHistoryPanel(*place), Gaps(*place)
        self.keeper = _Keeper(
            [
                _Turn(self._renew_outlook, 1),
                _Turn(self.timeline.renew, 4),
                _Turn(self.outlook.renew_hush, 5),
                _Turn(self._renew_view_and_head, 5),
                _Turn(self.gaps.renew, 10),
                _Turn(self.record.renew, 15),
            ]
        )

    def draw(self) -> None:
        """Draw what is known of it, and its parts."""
        with layout(self.told, machine_title(self.view), path="", look="machine", zone=self.view.time_zone):
            self.head = MachineHead()
            if self.view.state is not MachineState.RETIRED:
                self.outlook.draw()
            else:
                self.outlook.left = True
            self.timeline.draw()
            self.record.draw()
            with html.div().classes("ac-grid"):
                self.record.draw_scores()
                self.gaps.draw()
        self.head.on("ready", self._begin)
        subscribe(self.told, self.hear)

    def hear(self, overview: dict[str, Any]) -> None:
        """Take in what changed in the fleet."""
        own = [card for card in overview["cards"] if f"{card['site']}/{card['machine']}" == self.key]
        self.card = own[0] if own else self.card
        self._tell_time(overview["plant_time"])
        # A whole picture names nobody who has gone, only those who are there.
        self.left = (self.left or self.key in overview["gone"] or overview["complete"]) and not own
        if self.left and not self.outlook.left:
            self._soon(self._let_go)
        if own and self.outlook.left:
            ui.navigate.reload()  # it has come back: what stands here is about what was
        elif self.keeper.pulse(changed=bool(own)):
            self._soon(self.keeper.renew)

    def _soon(self, renew: Callable[[], Awaitable[None]]) -> None:
        client = ui.context.client

        async def within_the_page() -> None:
            with client:
                await renew()

        background_tasks.create(within_the_page(), name=f"renew the page of {self.key}")

    async def _let_go(self) -> None:
        """Show no more than the past, if the machine says itself that it has been let go."""
        try:
            await self._renew_view()
            if self.view.state is not MachineState.RETIRED or self.outlook.left:
                return
            self.outlook.leave()
            self.card = None
            self._show_head()
            for renew in (self.timeline.renew, self.gaps.renew, self.record.renew):
                await renew()
        except AlarmcastError:
            pass  # asked again with the next pulse, as long as nothing was taken away

    async def _begin(self) -> None:
        self.hear(await self.told.live.snapshot())
        self._show_head()
        await self.timeline.renew()
        await self.gaps.renew()

    async def _renew_outlook(self) -> None:
        if self.view.state is not MachineState.RETIRED:
            await self.outlook.renew()
        self._show_head()

    async def _renew_view_and_head(self) -> None:
        await self._renew_view()
        self._show_head()

    async def _renew_view(self) -> None:
        self.view = await self.told.client.machines.get(self.key)

    def _tell_time(self, now: str) -> None:
        self.now = now
        self.timeline.now = datetime.fromisoformat(now)

    def _show_head(self) -> None:
        forecast = self.outlook.forecast
        self.head.load(
            {
                "machine": self.view.model_dump(mode="json"),
                "card": self.card,
                "forecast": forecast and forecast.model_dump(mode="json", exclude={"alarms"}),
                "now": self.now,
            }
        )


async def machine(told: PageContext, site: str, name: str) -> bool:
    """Draw the page of a machine; return whether there is such a machine."""
    try:
        view = await told.client.machines.get(f"{site}/{name}")
    except (NotFound, Rejected):
        missing(told, f"{site}/{name}")
        return False
    _MachinePage(told, view).draw()
    return True
