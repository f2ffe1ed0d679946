"""What was lost: alarms that an agent had to drop, or could not read, before they could be sent."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from nicegui import html

from service.page.components.blocks import panel, table, timestamp
from service.page.layout import PageContext
from wire.events import GapReason
from wire.rest.gaps import GapPage, GapView

_WHY = {
    GapReason.SPOOL_FULL.value: "the agent's spool was full",
    GapReason.SOURCE_LOST.value: "the log was cut or replaced before it was read",
}


@dataclass
class Gaps:
    """A list that is drawn again only when it has changed."""

    told: PageContext
    machine: str
    zone: str
    shown: GapPage | None = None

    def draw(self) -> None:
        """Draw the panel."""
        with panel("Gaps", note="alarms that were lost at the machine before they could be sent"):
            self._list = html.div()

    async def renew(self) -> None:
        """Ask for the newest gaps."""
        found = await self.told.client.machines.gaps(self.machine, limit=50)
        if found == self.shown:
            return
        self.shown = found
        self._list.clear()
        with self._list:
            if not found.gaps:
                html.p("None: every alarm that it raised has arrived, or still waits there to be sent.").classes(
                    "ac-calm"
                )
                return
            rows = [
                (self._when(gap.first_at), self._when(gap.last_at), *_lost(gap)) for gap in reversed(found.gaps)
            ]
            table(("From", "Until", "Lost", "Why"), rows, numbers=(2,), label="Gaps, newest first")

    def _when(self, moment: datetime) -> Callable[[], None]:
        return lambda: timestamp(moment, self.zone)


def _lost(gap: GapView) -> tuple[str | int, str]:
    """Return how many alarms a gap stands for, as far as that is known, and why."""
    unknown = gap.reason == GapReason.SOURCE_LOST.value
    return "unknown" if unknown else gap.dropped, _WHY.get(gap.reason, gap.reason)
