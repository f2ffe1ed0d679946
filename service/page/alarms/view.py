"""The state of the alarms page as its URL holds it, so that a view can be shared and reloaded."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Self
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from wire.enums import AlarmMetricsGrouping
from wire.timestamps import EARLIEST, LATEST, isoformat

SPANS = {"24h": timedelta(days=1), "7d": timedelta(days=7), "30d": timedelta(days=30)}
CUSTOM = "custom"
DEFAULT_SPAN = "7d"
GROUPINGS = (
    AlarmMetricsGrouping.SITE,
    AlarmMetricsGrouping.MACHINE,
    AlarmMetricsGrouping.SHIFT,
    AlarmMetricsGrouping.DAY,
    AlarmMetricsGrouping.HOUR,
)
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class View:
    """A selection of alarms and how they are grouped; ``first`` and ``last`` are plant days, both included."""

    site: str = ""
    machine: str = ""
    shift: str = ""
    span: str = DEFAULT_SPAN
    first: date | None = None
    last: date | None = None
    by: AlarmMetricsGrouping = AlarmMetricsGrouping.MACHINE

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Self:
        """Read a URL query; values that cannot be read are replaced by their defaults."""
        span, groupings = query.get("span", DEFAULT_SPAN), {one.value: one for one in GROUPINGS}
        return cls(
            site=query.get("site", ""),
            machine=query.get("machine", "") if query.get("site") else "",
            shift=query.get("shift", ""),
            span=span if span in SPANS or span == CUSTOM else DEFAULT_SPAN,
            first=read_day(query.get("first")),
            last=read_day(query.get("last")),
            by=groupings.get(query.get("by", ""), AlarmMetricsGrouping.MACHINE),
        )

    @property
    def address(self) -> str:
        """The URL of this view without default values."""
        values = {"site": self.site, "machine": self.machine, "shift": self.shift}
        values["span"] = "" if self.span == DEFAULT_SPAN else self.span
        if self.span == CUSTOM:
            values |= {"first": str(self.first or ""), "last": str(self.last or "")}
        values["by"] = "" if self.by is AlarmMetricsGrouping.MACHINE else self.by.value
        query = urlencode({name: value for name, value in values.items() if value})
        return f"/alarms?{query}" if query else "/alarms"

    def query(self, now: datetime, zone: str) -> "AlarmsQuery":
        """Return the API query at a moment; a custom range is whole plant days and ends now at the latest."""
        if self.span != CUSTOM or self.first is None or self.last is None:
            length = SPANS.get(self.span, SPANS[DEFAULT_SPAN])
            return AlarmsQuery(self, now - length, now)
        plant = ZoneInfo(zone)
        start = datetime.combine(_clamp(self.first), time(), plant).astimezone(UTC)
        end = datetime.combine(_clamp(self.last) + _DAY, time(), plant).astimezone(UTC)
        return AlarmsQuery(self, start, min(end, max(now, start + timedelta(minutes=1))))


@dataclass(frozen=True)
class AlarmsQuery:
    """A view at a moment: the time range for the API, and the URLs of the same data as CSV."""

    view: View
    since: datetime
    until: datetime

    def csv(self, path: str, *, grouped: bool = False) -> str:
        """Return the URL of a CSV export of this view."""
        values = {"site": self.view.site, "machine": self.view.machine}
        values |= {"since": isoformat(self.since), "until": isoformat(self.until)}
        if path.startswith("/v1/alarm-metrics"):
            values["shift"] = self.view.shift
        if grouped:
            values["by"] = self.view.by.value
        return f"{path}?{urlencode({name: value for name, value in values.items() if value})}"


def _clamp(day: date) -> date:
    """Return the nearest day that the API accepts in every time zone."""
    return min(max(day, (EARLIEST + _DAY).date()), (LATEST - 3 * _DAY).date())


def read_day(text: str | None) -> date | None:
    """Return a day, or None if the text is not one."""
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None
