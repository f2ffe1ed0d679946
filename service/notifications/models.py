"""When a likely alarm is news: told once as it appears, and not again before it has clearly gone."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from service.http.principal import Sites
from wire.enums import NotificationEnd
from wire.forecasts import LikelyAlarm
from wire.identity import MachineId

# People asked for silence; when it is over, an alarm that is still likely is news again, at once.
_SUPPRESSED = (NotificationEnd.SHELVED, NotificationEnd.MAINTENANCE)


@dataclass(frozen=True)
class HysteresisPolicy:
    """How reluctant notices are: they end below ``release`` times the threshold, and rest ``quiet`` after that."""

    release: float = 0.8
    quiet: timedelta = timedelta(hours=1)


@dataclass(frozen=True)
class Notification:
    """A likely alarm that was news, as its first forecast said; times are plant time.

    ``rearmed_at`` is when it was closed, or, if its alarm ``came``, since when that is no longer likely.
    """

    id: int
    machine: MachineId
    code: int
    text: str
    severity: str
    as_of: datetime
    horizon_end: datetime
    probability: float
    threshold: float
    model_version: str
    opened_at: datetime
    closed_at: datetime | None = None
    ended: NotificationEnd | None = None
    rearmed_at: datetime | None = None

    @property
    def is_open(self) -> bool:
        """Whether it still stands."""
        return self.closed_at is None


@dataclass(frozen=True)
class NotificationQuery:
    """Which notices are asked for, newest first."""

    limit: int = 100
    before: int | None = None
    site: str | None = None
    machine: str | None = None
    is_open: bool | None = None
    sites: Sites = None  # only of these; of every site unless given


@dataclass
class NotificationChanges:
    """What one look at the forecasts makes of notices.

    A new notice, beside the row of its machine, has no number yet; the others are told by their numbers.
    ``rearmed`` are those closed before, and ``calmed`` the acknowledgements that have ended.
    """

    opened: list[tuple[int, Notification]] = field(default_factory=list)
    closed: list[tuple[int, NotificationEnd]] = field(default_factory=list)
    rearmed: list[int] = field(default_factory=list)
    ended_acks: list[int] = field(default_factory=list)

    def chunks(self, size: int) -> Iterator["NotificationChanges"]:
        """Yield them a few at a time; none depends on another."""
        longest = max(len(self.opened), len(self.closed), len(self.rearmed), len(self.ended_acks))
        for start in range(0, longest, size):
            part = slice(start, start + size)
            yield NotificationChanges(
                self.opened[part], self.closed[part], self.rearmed[part], self.ended_acks[part]
            )


class Observation(NamedTuple):
    """What is known of one code of one machine at a moment.

    ``alarm`` is None where the code is not forecast any more; ``trusted`` says whether its forecast is ``ok``.
    """

    at: datetime
    alarm: LikelyAlarm | None
    trusted: bool
    occurred: bool = False
    suppression: NotificationEnd | None = None
    acknowledged: bool = False


class NotificationTransition(NamedTuple):
    """What is to be done: open a notice, close the open one, or let there be another after the one closed."""

    opens: bool = False
    closes: NotificationEnd | None = None
    rearms: bool = False


NOTHING = NotificationTransition()


def next_transition(
    sight: Observation, last: Notification | None, habits: HysteresisPolicy
) -> NotificationTransition:
    """Say what becomes of a code's last notice, or whether there must be a new one.

    Between ``release * threshold`` and ``threshold`` nothing ever happens, so a probability that wobbles there
    is told once. A forecast that is not to be trusted opens and ends nothing before its horizon has passed.
    """
    if last is not None and last.is_open:
        return NotificationTransition(closes=_end(sight, last, habits))
    if last is not None and last.rearmed_at is None:
        return NotificationTransition(rearms=is_cleared(sight, habits))
    if sight.suppression is not None or sight.acknowledged or _in_cooldown(last, sight.at, habits):
        return NOTHING
    return NotificationTransition(opens=sight.trusted and sight.alarm is not None and sight.alarm.expected)


def is_cleared(sight: Observation, habits: HysteresisPolicy) -> bool:
    """Say whether an alarm is clearly no longer likely, by a forecast that can be trusted."""
    if sight.alarm is None:
        return True
    return sight.trusted and sight.alarm.probability < habits.release * sight.alarm.threshold


def _end(sight: Observation, last: Notification, habits: HysteresisPolicy) -> NotificationEnd | None:
    if sight.occurred:
        return NotificationEnd.CAME
    if sight.suppression is not None:
        return sight.suppression
    if sight.alarm is None:
        return NotificationEnd.WITHDRAWN
    if not sight.trusted:
        return NotificationEnd.LAPSED if sight.at >= last.horizon_end else None
    return NotificationEnd.FELL if is_cleared(sight, habits) else None


def _in_cooldown(last: Notification | None, at: datetime, habits: HysteresisPolicy) -> bool:
    if last is None or last.rearmed_at is None or last.ended in _SUPPRESSED:
        return False
    return at < last.rearmed_at + habits.quiet


class NotificationReader(Protocol):
    """Likely alarms that were news."""

    def page(self, query: NotificationQuery) -> list[Notification]: ...
