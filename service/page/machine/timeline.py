"""The alarm history of a machine: alarms by code over time, with floods, chattering and gaps."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from nicegui import html, ui
from nicegui.events import GenericEventArguments

from service.page.components.blocks import machine_title, panel
from service.page.components.elements import Chart
from service.page.components.forms import chooser
from service.page.layout import PageContext, show_api_errors
from service.page.machine.timeline_chart import options
from service.page.texts import text
from wire.rest.timelines import TimelineView

_SPANS_H = (8, 28, 168)
_DEFAULT_SPAN_H = 28


@dataclass
class TimelinePanel:
    """The chart with its controls; zoom and span stay as the reader has set them."""

    context: PageContext
    machine: str
    zone: str
    now: datetime | None = None  # plant time
    span: timedelta = field(default_factory=lambda: timedelta(hours=_DEFAULT_SPAN_H))

    def draw(self) -> None:
        """Draw the panel; ``refresh`` loads the alarms."""
        with panel(text("machine.timeline"), note=text("machine.timeline.note")):
            with html.div().classes("ac-tools"):
                spans = [(str(hours), text(f"machine.timeline.span.{hours}")) for hours in _SPANS_H]
                chooser("span", text("machine.timeline.span"), spans, str(_DEFAULT_SPAN_H), self._choose)
                self._summary = ui.label("").classes("quiet small").props('role="status"')
            self._chart = Chart({}, label=text("machine.timeline.label"), zone=self.zone)
            self._chart.classes("ac-tall")

    async def refresh(self) -> None:
        """Fetch the alarms of the span."""
        since = None if self.now is None else self.now - self.span
        timeline = await self.context.client.timelines.get(self.machine, since=since, until=self.now)
        self._summary.text = summary(timeline)
        label = text("machine.timeline.label.summary", machine=machine_title(timeline), summary=summary(timeline))
        self._chart.show(options(timeline), label=label)

    async def _choose(self, event: GenericEventArguments) -> None:
        self.span = timedelta(hours=int(event.args))
        with show_api_errors():
            await self.refresh()


def summary(timeline: TimelineView) -> str:
    """Return the counts of a timeline as a text."""
    counts = [
        text("machine.timeline.alarms", count=timeline.count),
        text("machine.timeline.floods", count=len(timeline.floods)),
        text("machine.timeline.chatter", count=len(timeline.chatter)),
        text("machine.timeline.gaps", count=len(timeline.gaps)),
    ]
    return ", ".join(counts + ([text("machine.timeline.truncated")] if timeline.truncated else []))
