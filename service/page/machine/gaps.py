"""The panel of lost alarms: dropped or unread at the edge before they could be sent."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from nicegui import html

from service.page.components.blocks import empty_message, panel, table, timestamp
from service.page.layout import PageContext
from service.page.texts import text
from wire.events import GapReason
from wire.rest.gaps import GapPage, GapView

_MAX_ROWS = 50


@dataclass
class GapsPanel:
    """A table that is redrawn only when it has changed."""

    context: PageContext
    machine: str
    zone: str
    shown: GapPage | None = None

    def draw(self) -> None:
        """Draw the panel."""
        with panel(text("machine.gaps"), note=text("machine.gaps.note")):
            self._list = html.div()

    async def refresh(self) -> None:
        """Fetch the newest gaps."""
        page = await self.context.client.machines.gaps(self.machine, limit=_MAX_ROWS)
        if page == self.shown:
            return
        self.shown = page
        self._list.clear()
        with self._list:
            if page.gaps:
                self._draw_table(page)
            else:
                empty_message(text("machine.gaps.none"))

    def _draw_table(self, page: GapPage) -> None:
        head = (
            text("machine.gaps.from"),
            text("machine.gaps.until"),
            text("machine.gaps.count"),
            text("machine.gaps.reason"),
        )
        rows = [
            (self._time(gap.first_at), self._time(gap.last_at), _count(gap), gap_reason(gap.reason))
            for gap in reversed(page.gaps)
        ]
        table(head, rows, numbers=(2,), label=text("machine.gaps.label"))

    def _time(self, moment: datetime) -> Callable[[], None]:
        return lambda: timestamp(moment, self.zone)


def gap_reason(reason: str) -> str:
    """Return the reason of a gap as a text; one that is not known as it is."""
    return text(f"machine.gaps.reason.{reason}") if reason in tuple(GapReason) else reason


def _count(gap: GapView) -> str | int:
    return text("machine.gaps.unknown") if gap.reason == GapReason.SOURCE_LOST else gap.dropped
