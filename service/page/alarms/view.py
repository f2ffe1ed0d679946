"""What the alarms page shows, as its address says it, so that a view can be shared and reloaded."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Self
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from wire.enums import AlarmMetricsGrouping
from wire.timestamps import EARLIEST, LATEST, isoformat

SPANS = {"24h": timedelta(days=1), "7d": timedelta(days=7), "30d": timedelta(days=30)}
OWN = "own"
USUAL_SPAN = "7d"
LINES = (
    AlarmMetricsGrouping.SITE,
    AlarmMetricsGrouping.MACHINE,
    AlarmMetricsGrouping.SHIFT,
    AlarmMetricsGrouping.DAY,
    AlarmMetricsGrouping.HOUR,
)
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class View:
    """Whose alarms, of when, in which lines; ``first`` and ``last`` are plant days, both included."""

    site: str = ""
    machine: str = ""
    shift: str = ""
    span: str = USUAL_SPAN
    first: date | None = None
    last: date | None = None
    by: AlarmMetricsGrouping = AlarmMetricsGrouping.MACHINE

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Self:
        """Read an address; what cannot be read is as usual, because addresses are typed and grow old."""
        span, lines = query.get("span", USUAL_SPAN), {one.value: one for one in LINES}
        return cls(
            site=query.get("site", ""),
            machine=query.get("machine", "") if query.get("site") else "",
            shift=query.get("shift", ""),
            span=span if span in SPANS or span == OWN else USUAL_SPAN,
            first=read_day(query.get("first")),
            last=read_day(query.get("last")),
            by=lines.get(query.get("by", ""), AlarmMetricsGrouping.MACHINE),
        )

    @property
    def address(self) -> str:
        """The page's address with this view; what is as usual is left out."""
        told = {"site": self.site, "machine": self.machine, "shift": self.shift}
        told["span"] = "" if self.span == USUAL_SPAN else self.span
        if self.span == OWN:
            told |= {"first": str(self.first or ""), "last": str(self.last or "")}
        told["by"] = "" if self.by is AlarmMetricsGrouping.MACHINE else self.by.value
        query = urlencode({name: value for name, value in told.items() if value})
        return f"/alarms?{query}" if query else "/alarms"

    def question(self, now: datetime, zone: str) -> "AlarmsQuery":
        """Return what to ask the API at a moment; own days are whole days of the plant, today's up to now."""
        if self.span != OWN or self.first is None or self.last is None:
            length = SPANS.get(self.span, SPANS[USUAL_SPAN])
            return AlarmsQuery(self, now - length, now)
        wall = ZoneInfo(zone)
        start = datetime.combine(_within_reach(self.first), time(), wall).astimezone(UTC)
        end = datetime.combine(_within_reach(self.last) + _DAY, time(), wall).astimezone(UTC)
        return AlarmsQuery(self, start, min(end, max(now, start + timedelta(minutes=1))))


@dataclass(frozen=True)
class AlarmsQuery:
    """A view at a moment: what the API is asked, and where the same is to be had as CSV."""

    view: View
    since: datetime
    until: datetime

    def csv(self, path: str, *, lines: bool = False) -> str:
        """Return the address of a table of this view as CSV."""
        told = {"site": self.view.site, "machine": self.view.machine}
        told |= {"since": isoformat(self.since), "until": isoformat(self.until)}
        if path.startswith("/v1/alarm-metrics"):
            told["shift"] = self.view.shift
        if lines:
            told["by"] = self.view.by.value
        return f"{path}?{urlencode({name: value for name, value in told.items() if value})}"


def _within_reach(day: date) -> date:
    """Return the nearest day that the API takes a moment of, whatever the time zone."""
    return min(max(day, (EARLIEST + _DAY).date()), (LATEST - 3 * _DAY).date())


def read_day(text: str | None) -> date | None:
    """Read a day, or return None for what is none."""
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None
