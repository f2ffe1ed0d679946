"""A machine's last hours at a glance."""

from datetime import datetime, timedelta
from typing import NamedTuple

HOUR = timedelta(hours=1)


class HourlyCounts(NamedTuple):
    """Alarms in each hour, oldest first, and the last alarm there ever was."""

    counts: tuple[int, ...]
    last_at: datetime | None = None
    last_code: int | None = None


def hourly_counts_end(now: datetime) -> datetime:
    """Return the end of the hour under way."""
    return now.replace(minute=0, second=0, microsecond=0) + HOUR
