"""A machine's stored past, in pages and in records of what is missing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from forecasting.series import AlarmSeries


class StoredAlarm(NamedTuple):
    """One alarm as it stands in the store; ``flag`` says why it is kept out of windows, if it is."""

    at: datetime
    code: int
    received_at: datetime
    flag: str | None


class Cursor(NamedTuple):
    """The place of an alarm in a machine's history; unique, so pages neither skip nor repeat."""

    at_us: int
    code: int
    epoch_id: int
    seq: int


@dataclass(frozen=True)
class PageQuery:
    """Which alarms are asked for, newest first; ``flagged`` asks for those kept out of windows instead."""

    limit: int = 100
    before: Cursor | None = None
    since: datetime | None = None
    until: datetime | None = None
    code: int | None = None
    flagged: bool = False


@dataclass(frozen=True)
class AlarmPage:
    """Some alarms, newest first, and where to go on."""

    alarms: list[StoredAlarm]
    next: Cursor | None


@dataclass(frozen=True)
class GapRecord:
    """Events an agent had to drop."""

    first_at: datetime
    last_at: datetime
    first_seq: int
    last_seq: int
    reason: str

    @property
    def events(self) -> int:
        """How many events are missing."""
        return self.last_seq - self.first_seq + 1


ExactGaps = list[tuple[GapRecord, int]]  # gaps, each with how many of its events are really missing


@dataclass(frozen=True, eq=False)
class Evidence:
    """A machine's alarms in a span, the gaps that touch it, and when its whole history begins and ends."""

    series: AlarmSeries
    gaps: Sequence[GapRecord]
    first_at: datetime | None
    last_at: datetime | None
