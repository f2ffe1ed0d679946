"""Watch the signals of a controller and report their edges."""

import logging
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Event
from typing import NamedTuple, Protocol

from edge_agent.sources import Context, Lost, SourceBatch
from edge_agent.sources.edges import Described, Edge, EdgeDetector, number_edges
from edge_agent.sources.outage import Notice, Outage, read_bookmark, write_bookmark
from edge_agent.sources.signals import Unreachable
from wire.broker_check import Finding
from wire.events import TransitionKind

log = logging.getLogger(__name__)

_MIN_RETRY_S, _MAX_RETRY_S = 0.5, 10.0
_BOOKMARK_INTERVAL_S = 10.0  # without alarms: a gap after a crash begins at most this much too early


@dataclass(frozen=True)
class Reading:
    """The active alarms of a signal by name.

    ``at`` is the time of the change, now unless given. With a ``problem`` the signal could not be read. ``lost``
    says that changes before this reading are missing. ``keep`` clears all signals but these. ``acknowledged`` is
    the name of an alarm that was acknowledged at the machine.
    """

    signal: str
    active: Mapping[str, Described] = field(default_factory=dict)
    at: datetime | None = None
    problem: str | None = None
    lost: str | None = None
    keep: frozenset[str] | None = None
    acknowledged: str | None = None


class Device(Protocol):
    """A controller; ``Unreachable`` from any method ends the connection."""

    @property
    def title(self) -> str: ...

    @property
    def unnoticed(self) -> timedelta:
        """How long a connection may be lost before that is noticed."""
        ...

    @property
    def unknown(self) -> str | None:
        """Why nothing is known though the connection works; empty while that is normal, None if all is known."""
        ...

    def open(self) -> None:
        """Connect."""

    def readings(self, stop: Event) -> Sequence[Reading]:
        """Wait for the next poll, or a short time for changes, and return them in order."""
        ...

    def check(self) -> Iterator[Finding]:
        """Yield whether each signal can be read; the device is open."""
        ...

    def close(self) -> None:
        """Disconnect."""


class _Step(NamedTuple):
    edges: list[Edge]
    skipped: list[str]
    lost: Lost | None
    texts: dict[str, Described]


class Monitored:
    """Reads a device for ever; the bookmark stores active alarms, so a restart does not raise them again."""

    def __init__(self, device: Device, context: Context, *, debounce: float, stops: Collection[str] = ()) -> None:
        self._device, self._context, self._debounce, self._stops = device, context, debounce, stops
        self._unreadable: dict[str, tuple[str, datetime]] = {}

    def batches(self, bookmark: str | None, stop: Event) -> Iterator[SourceBatch]:
        """Yield the edges between readings."""
        seen, stored = read_bookmark(bookmark)
        detector = EdgeDetector(self._debounce, stored.get("active", {}), self._stops)
        outage = Outage(self._device.title, seen, self._device.unnoticed)
        opened, retry, written = False, _MIN_RETRY_S, float("-inf")

        def batch(notice: Notice, step: _Step) -> SourceBatch:
            numbered = number_edges(step.edges, self._context, step.texts)
            position = write_bookmark(outage.seen, active=detector.signals())
            skipped = step.skipped + numbered.skipped
            return SourceBatch(
                numbered.alarms, position, skipped, notice.lost, notice.warning, numbered.transitions
            )

        try:
            while not stop.is_set():
                try:
                    if not opened:
                        self._device.open()
                        opened = True
                    readings = self._device.readings(stop)
                except Exception as error:
                    if not isinstance(error, Unreachable):
                        log.exception("the connection to %s failed in an unexpected way", self._device.title)
                    self._device.close()
                    opened = False
                    failure = outage.failed(str(error), self._context.now())
                    if failure is not None:
                        yield batch(failure, _Step([], [], None, {}))
                    stop.wait(retry)
                    retry = min(retry * 2, _MAX_RETRY_S)
                    continue
                retry = _MIN_RETRY_S
                step = self._step(readings, detector)
                notice = self._judge(step, outage)
                is_due = time.monotonic() - written >= _BOOKMARK_INTERVAL_S
                if step.edges or step.skipped or any(notice) or is_due:
                    written = time.monotonic()
                    yield batch(notice, step)
            yield batch(Notice(), _Step([], [], None, {}))
        finally:
            self._device.close()

    def check(self) -> Iterator[Finding]:
        """Yield whether the device is reachable, and each signal readable."""
        try:
            self._device.open()
            yield Finding("source", ok=True, message=f"{self._device.title} answers")
            yield from self._device.check()
        except Unreachable as error:
            yield Finding("source", ok=False, message=f"cannot read {self._device.title}: {error}")
        finally:
            self._device.close()

    def _judge(self, step: _Step, outage: Outage) -> Notice:
        """Return what a reading adds to an outage: its end, or a warning while nothing is known."""
        now, before, unknown = self._context.now(), outage.seen, self._device.unknown
        if unknown is not None:
            return (outage.failed(unknown, now) if unknown else None) or Notice()
        lost = outage.succeeded(now) or step.lost
        if lost is not None and lost.since is None:
            lost = Lost(lost.message, before)
        return Notice(lost=lost)

    def _step(self, readings: Sequence[Reading], detector: EdgeDetector) -> _Step:
        now = time.monotonic()
        step = _Step([], [], None, {})
        for reading in readings:
            at = reading.at or self._context.now()
            if reading.problem is not None:
                message, since = self._unreadable.get(reading.signal, ("", at))
                if message != reading.problem:
                    step.skipped.append(f"{reading.signal}: {reading.problem}")
                    self._unreadable[reading.signal] = (reading.problem, since)
                continue
            if reading.keep is not None:
                for signal in set(detector.signals()) - reading.keep:
                    step.edges.extend(detector.update(signal, (), at, now))
                continue
            if reading.acknowledged is not None:
                step.edges.append(Edge(at, reading.acknowledged, TransitionKind.ACKNOWLEDGED))
                continue
            if reading.lost is not None:
                step = step._replace(lost=Lost(reading.lost, None))
            step.texts.update(reading.active)
            step.edges.extend(detector.update(reading.signal, reading.active, at, now))
            if reading.signal in self._unreadable:
                message, since = self._unreadable.pop(reading.signal)
                text = f"{reading.signal} could not be read: {message}. Its alarms of that time are unknown."
                step = step._replace(lost=Lost(text, since))
        step.edges.extend(detector.settle(now))
        return step
