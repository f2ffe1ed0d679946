"""Where alarms come from. A source yields batches, each with a bookmark to go on from after a restart."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event
from typing import Protocol

from wire.alarm import Alarm


@dataclass(frozen=True)
class Lost:
    """Alarms of the source that can no longer be read: why, and since when, if that is known."""

    words: str
    since: datetime | None


@dataclass(frozen=True)
class SourceBatch:
    """Alarms and the bookmark that stands after them; both reach the spool in one transaction.

    ``skipped`` tells what could not be read as an alarm, in words; ``lost`` that alarms before these are missing.
    """

    alarms: list[Alarm]
    bookmark: str
    skipped: list[str] = field(default_factory=list)
    lost: Lost | None = None


class Source(Protocol):
    """A machine's alarms, from a bookmark on."""

    def batches(self, bookmark: str | None, stop: Event) -> Iterator[SourceBatch]:
        """Yield what follows ``bookmark`` (from the start where it is None) until ``stop`` or the end."""
        ...
