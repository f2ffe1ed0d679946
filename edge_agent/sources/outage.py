"""Times in which a source was not read: a warning when they begin, and gaps."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from edge_agent.sources import Lost

_GAP_INTERVAL = timedelta(minutes=15)  # during a long outage


class Notice(NamedTuple):
    """What an outage adds to a batch."""

    warning: str | None = None
    lost: Lost | None = None


class Outage:
    """Follows whether a source is read; ``seen`` is the last time it was, if known from a bookmark.

    ``unnoticed`` is how long a connection may be lost before that is noticed: a gap begins so much earlier. Where
    the source ``keeps`` alarms meanwhile, a gap is known only when it is read again.
    """

    def __init__(
        self, title: str, seen: datetime | None, unnoticed: timedelta = timedelta(), *, keeps: bool = False
    ) -> None:
        self.title, self.seen, self._unnoticed, self._keeps = title, seen, unnoticed, keeps
        self._reason = "the agent was stopped" if seen is not None else ""
        self._warned = ""

    def failed(self, error: str, now: datetime) -> Notice | None:
        """Return a warning at the first failure and at another reason, and a gap every 15 minutes."""
        warning = None
        if error != self._warned:
            self._warned = self._reason = error
            warning = f"Cannot read {self.title}: {error}. Alarms are unknown until it is read again."
        if not self._keeps and self.seen is not None and now - self.seen >= _GAP_INTERVAL:
            lost, self.seen = self._lost(now), now
            return Notice(warning, lost)
        return Notice(warning) if warning else None

    def succeeded(self, now: datetime) -> Lost | None:
        """Return the gap that has ended, if there was one."""
        lost = self._lost(now) if self._reason and self.seen is not None else None
        self.seen, self._reason, self._warned = now, "", ""
        return lost

    def _lost(self, now: datetime) -> Lost:
        since = (self.seen or now) - self._unnoticed
        return Lost(
            f"{self.title} was not read from {since.isoformat(timespec='seconds')} to "
            f"{now.isoformat(timespec='seconds')}: {self._reason}. Alarms of that time are unknown.",
            since,
        )


def write_bookmark(seen: datetime | None, **more: Any) -> str:
    """Return a bookmark with the time of the last reading."""
    return json.dumps({"seen": seen.isoformat() if seen else None, **more}, separators=(",", ":"))


def read_bookmark(bookmark: str | None) -> tuple[datetime | None, Mapping[str, Any]]:
    """Return the time of the last reading and the rest of a bookmark."""
    stored: dict[str, Any] = json.loads(bookmark) if bookmark else {}
    seen = stored.get("seen")
    return (datetime.fromisoformat(seen) if seen else None), stored
