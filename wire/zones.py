"""Which clock to read by where machines of several time zones are shown together, and what it is called."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from zoneinfo import ZoneInfo


def common_zone(zones: Iterable[str]) -> str:
    """Return the time zone of most machines, of equally common ones the first by name; UTC without machines."""
    counts = Counter(zones)
    return min(counts, key=lambda zone: (-counts[zone], zone)) if counts else "UTC"


def zone_word(at: datetime, zone: str) -> str:
    """Return the short name of a zone at a moment: ``CET``, or ``GMT+3`` where it has no name."""
    word = at.astimezone(ZoneInfo(zone)).tzname() or zone
    return f"GMT{word}" if word[0] in "+-" else word
