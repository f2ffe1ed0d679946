"""What the machine raised: alarms by code over time, with floods, chatter and gaps marked."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from nicegui import html, ui
from nicegui.events import GenericEventArguments

from service.page.components.blocks import machine_title, panel
from service.page.components.elements import Chart
from service.page.layout import PageContext, show_api_errors
from service.page.machine.timeline_chart import options
from wire.rest.timelines import TimelineView

_SPANS = {"8": "8 hours", "28": "28 hours", "168": "7 days"}


@dataclass
class Timeline:
    """The chart and what stands around it; zoom and span stay as the reader has set them."""

    told: PageContext
    machine: str
    zone: str
    now: datetime | None = None  # plant time
    span: timedelta = field(default_factory=lambda: timedelta(hours=28))

    def draw(self) -> None:
        """Draw the panel; alarms come with the first ``renew``."""
        with panel("What it raised", note="drag the handles below the chart to zoom; hover for the words"):
            with html.div().classes("ac-tools"):
                with html.label("Span"), html.select() as spans:
                    for hours, words in _SPANS.items():
                        html.option(words, value=hours).props("selected" if hours == "28" else "")
                self._said = ui.label("").classes("quiet small").props('role="status"')
            self._chart = Chart({}, label="Alarms of the machine over time", zone=self.zone)
            self._chart.classes("ac-tall")
        spans.on("change", self._choose, js_handler="(event) => emit(event.target.value)")

    async def renew(self) -> None:
        """Ask for the span again."""
        since = None if self.now is None else self.now - self.span
        found = await self.told.client.timelines.get(self.machine, since=since, until=self.now)
        words = summary(found)
        self._said.text = words
        self._chart.show(options(found), label=f"Alarms of {machine_title(found)} over time: {words}")

    async def _choose(self, event: GenericEventArguments) -> None:
        self.span = timedelta(hours=int(event.args))
        with show_api_errors():
            await self.renew()


def summary(found: TimelineView) -> str:
    """Return in words what a timeline shows."""
    told = [
        _counted(found.count, "alarm"),
        _counted(len(found.floods), "flood"),
        _counted(len(found.chatter), "burst") + " of chatter",
        _counted(len(found.gaps), "gap"),
    ]
    words = ", ".join(told)
    return f"{words}; too many to draw, the newest are shown" if found.truncated else words


def _counted(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
