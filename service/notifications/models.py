"""Notification rules: open once when an alarm becomes likely, close with hysteresis; suppression values."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from wire.enums import NotificationEnd
from wire.forecasts import LikelyAlarm
from wire.identity import MachineId
from wire.rest.catalogue import NO_RESPONSE, AlarmResponse

# After a suppression there is no cooldown: an alarm that is still likely opens a notification at once.
_SUPPRESSED = (NotificationEnd.SHELVED, NotificationEnd.MAINTENANCE, NotificationEnd.SHIFT_ENDED)


@dataclass(frozen=True)
class HysteresisPolicy:
    """Close below ``release`` times the policy's threshold; open no other for ``cooldown`` after that."""

    release: float = 0.8
    cooldown: timedelta = timedelta(hours=1)


@dataclass(frozen=True)
class Notification:
    """A likely alarm with the values of the forecast that opened it; times are plant time.

    ``rearmed_at`` is when it was closed or, if the alarm occurred, when its probability dropped after that.
    ``webhook`` is whose own policy opened it; 0 is the policy of the site. One that is ``held_back`` was over the
    limit of its shift and is not sent. Of ``similar_total`` earlier ones, ``similar_right`` were right.
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
    webhook: int = 0
    held_back: bool = False
    similar_right: int = 0
    similar_total: int = 0
    response: AlarmResponse = NO_RESPONSE  # of the catalogue, when it is read

    @property
    def is_open(self) -> bool:
        return self.closed_at is None


@dataclass(frozen=True)
class NotificationQuery:
    """Filter of a page of notifications, newest first."""

    limit: int = 100
    before: int | None = None
    site: str | None = None
    machine: str | None = None
    is_open: bool | None = None


@dataclass
class NotificationChanges:
    """The changes of one evaluation; an opened notification comes with its machine's row id and has no id yet."""

    opened: list[tuple[int, Notification]] = field(default_factory=list)
    closed: list[tuple[int, NotificationEnd]] = field(default_factory=list)
    rearmed: list[int] = field(default_factory=list)
    ended_acks: list[int] = field(default_factory=list)

    def chunks(self, size: int) -> Iterator["NotificationChanges"]:
        """Yield the changes in parts of at most ``size`` of each kind; the parts are independent."""
        count = max(len(self.opened), len(self.closed), len(self.rearmed), len(self.ended_acks))
        for start in range(0, count, size):
            part = slice(start, start + size)
            yield NotificationChanges(
                self.opened[part], self.closed[part], self.rearmed[part], self.ended_acks[part]
            )


class Observation(NamedTuple):
    """The state of one code of a machine at a moment.

    ``alarm`` is None if the code is no longer forecast; ``trusted`` is whether the forecast's status is ``ok``;
    ``threshold`` is the policy's; ``shift_start`` is that of the machine's shift.
    """

    at: datetime
    alarm: LikelyAlarm | None
    trusted: bool
    threshold: float
    occurred: bool = False
    suppression: NotificationEnd | None = None
    acknowledged: bool = False
    shift_start: datetime | None = None


class NotificationTransition(NamedTuple):
    """Open a notification, close the open one, or rearm the closed one."""

    opens: bool = False
    closes: NotificationEnd | None = None
    rearms: bool = False


NO_TRANSITION = NotificationTransition()


def next_transition(
    observation: Observation, last: Notification | None, policy: HysteresisPolicy
) -> NotificationTransition:
    """Return the transition of a code, given its last notification.

    Between ``release * threshold`` and ``threshold`` nothing changes, so a probability that oscillates there
    notifies once. An untrusted forecast opens nothing, and closes nothing before the horizon has passed.
    """
    if last is not None and last.is_open:
        return NotificationTransition(closes=_end(observation, last, policy))
    if last is not None and last.rearmed_at is None:
        return NotificationTransition(rearms=is_cleared(observation, policy))
    if (
        observation.suppression is not None
        or observation.acknowledged
        or _in_cooldown(last, observation.at, policy)
    ):
        return NO_TRANSITION
    likely = observation.alarm is not None and observation.alarm.probability >= observation.threshold
    return NotificationTransition(opens=observation.trusted and likely)


def is_cleared(observation: Observation, policy: HysteresisPolicy) -> bool:
    """Return whether a trusted forecast puts the probability clearly below the threshold."""
    if observation.alarm is None:
        return True
    return observation.trusted and observation.alarm.probability < policy.release * observation.threshold


def _end(observation: Observation, last: Notification, policy: HysteresisPolicy) -> NotificationEnd | None:
    if observation.occurred:
        return NotificationEnd.OCCURRED
    if observation.suppression is not None:
        return observation.suppression
    if observation.alarm is None:
        return NotificationEnd.WITHDRAWN
    if last.held_back and observation.shift_start is not None and last.opened_at < observation.shift_start:
        return NotificationEnd.SHIFT_ENDED
    if not observation.trusted:
        return NotificationEnd.EXPIRED if observation.at >= last.horizon_end else None
    return NotificationEnd.CLEARED if is_cleared(observation, policy) else None


def _in_cooldown(last: Notification | None, at: datetime, policy: HysteresisPolicy) -> bool:
    if last is None or last.rearmed_at is None or last.ended in _SUPPRESSED:
        return False
    return at < last.rearmed_at + policy.cooldown


@dataclass(frozen=True)
class ShelvedAlarm:
    """An alarm of one machine without notifications in ``[start, end)``, plant time."""

    id: int
    machine: MachineId
    code: int
    start: datetime
    until: datetime
    actor: str
    reason: str
    unshelved_at: datetime | None = None

    @property
    def end(self) -> datetime:
        return self.until if self.unshelved_at is None else min(self.until, self.unshelved_at)

    def is_active(self, at: datetime) -> bool:
        return self.start <= at < self.end


@dataclass(frozen=True)
class MaintenanceWindow:
    """A time without notifications of a machine, or of a whole site if ``machine`` is None."""

    id: int
    site: str
    machine: str | None
    start: datetime
    until: datetime
    actor: str
    reason: str
    cancelled_at: datetime | None = None

    @property
    def end(self) -> datetime:
        """The end; equal to the start if the window was cancelled before it started."""
        if self.cancelled_at is None:
            return self.until
        return max(self.start, min(self.until, self.cancelled_at))

    def is_active(self, at: datetime) -> bool:
        return self.start <= at < self.end

    def covers(self, machine: MachineId, at: datetime) -> bool:
        return self.site == machine.site and self.machine in {None, machine.machine} and self.is_active(at)


@dataclass(frozen=True)
class Acknowledgement:
    """A likely or raised alarm that a user acknowledged; it ends when the alarm is no longer likely."""

    id: int
    machine: MachineId
    code: int
    at: datetime
    actor: str
    note: str | None
    notification: int | None = None  # the one that was open
    ended_at: datetime | None = None


@dataclass(frozen=True)
class SuppressionQuery:
    """Filter of a page, newest first; with ``active_at`` only what is active at that moment."""

    limit: int = 100
    before: int | None = None
    site: str | None = None
    machine: str | None = None
    active_at: datetime | None = None
