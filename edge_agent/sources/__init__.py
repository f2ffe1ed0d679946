"""Sources of alarms: each yields batches with a bookmark to continue from after a restart."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event
from typing import Protocol

from wire.alarm import Alarm


@dataclass(frozen=True)
class Lost:
    """Alarms that can no longer be read: why, and since when, if known."""

    message: str
    since: datetime | None


@dataclass(frozen=True)
class SourceBatch:
    """Alarms and the bookmark after them, stored in one transaction.

    ``skipped`` are messages about unreadable rows; ``lost`` says that alarms before these are missing.
    """

    alarms: list[Alarm]
    bookmark: str
    skipped: list[str] = field(default_factory=list)
    lost: Lost | None = None


class Source(Protocol):
    """A machine's alarms, from a bookmark on."""

    def batches(self, bookmark: str | None, stop: Event) -> Iterator[SourceBatch]:
        """Yield alarms after ``bookmark``, or from the start if it is None, until ``stop`` or the end."""
        ...
