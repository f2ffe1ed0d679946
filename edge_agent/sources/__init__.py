"""Sources of alarms: each yields batches with a bookmark to continue from after a restart."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from threading import Event
from typing import NamedTuple, Protocol

from edge_agent.sources.codes import CodeBook
from edge_agent.spool_models import Transition
from wire.alarm import Alarm
from wire.broker_check import Finding
from wire.clock import PlantClock
from wire.events import TransitionKind
from wire.log_rows import in_utc
from wire.timestamps import clamped


@dataclass(frozen=True)
class Lost:
    """Alarms that can no longer be read: why, and since when, if known."""

    message: str
    since: datetime | None


@dataclass(frozen=True)
class SourceBatch:
    """Alarms and the bookmark after them, stored in one transaction.

    ``skipped`` are messages about unreadable rows; ``lost`` says that alarms before these are missing; ``warning``
    is a message for people. ``transitions`` are alarms that were cleared or changed otherwise.
    """

    alarms: list[Alarm]
    bookmark: str
    skipped: list[str] = field(default_factory=list)
    lost: Lost | None = None
    warning: str | None = None
    transitions: list[Transition] = field(default_factory=list)

    def add(self, alarm: Alarm, kind: TransitionKind | None = None) -> None:
        """Append an alarm that was raised, or changed otherwise if a kind is given."""
        if kind is None:
            self.alarms.append(alarm)
        else:
            self.transitions.append(Transition(alarm, kind, len(self.alarms)))


class Record(NamedTuple):
    """An alarm that was raised, or changed otherwise if there is a kind."""

    alarm: Alarm
    kind: TransitionKind | None


class Rows(Protocol):
    """Reads the lines of a log."""

    def read(self, line: str) -> Alarm | Record | None:
        """Return the line's alarm, None if it has none of ours, or raise :class:`RowRejected`."""
        ...


class Source(Protocol):
    """A machine's alarms, from a bookmark on."""

    def batches(self, bookmark: str | None, stop: Event) -> Iterator[SourceBatch]:
        """Yield alarms after ``bookmark``, or from the start if it is None, until ``stop`` or the end.

        The next batch is requested only after the last one is in the spool, also at a stop: a source ends itself.
        """
        ...


class CheckedSource(Source, Protocol):
    """A source that the doctor can check."""

    def check(self) -> Iterator[Finding]:
        """Yield findings: whether the source is reachable, and each of its parts readable."""
        ...


@dataclass(frozen=True)
class Context:
    """What every source of names and times uses: clock, codes, time zone, start, and the source's password.

    In a ``trial`` nothing is stored: a source must not acknowledge anything.
    """

    clock: PlantClock
    codes: CodeBook = field(default_factory=CodeBook)
    zone: tzinfo = UTC
    since: datetime | None = None
    password: str | None = field(default=None, repr=False)
    trial: bool = False

    def now(self) -> datetime:
        """Return the plant time, within what the contract can carry."""
        return clamped(self.clock.now())

    def alarm(self, name: str, at: datetime, text: str = "", severity: str = "") -> Alarm | None:
        """Return the alarm of a name, None if it is before the start, or raise :class:`RowRejected`."""
        at = in_utc(at, self.zone)
        if self.since is not None and at < self.since:
            return None
        return Alarm(at, self.codes.number(name, text, severity))
