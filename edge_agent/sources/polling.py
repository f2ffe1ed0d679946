"""Read a controller at an interval and report the edges of its signals."""

import time
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from threading import Event
from typing import Protocol

from edge_agent.sources import Context, Lost, SourceBatch
from edge_agent.sources.edges import Edge, EdgeDetector, number_edges
from edge_agent.sources.outage import Notice, Outage, read_bookmark, write_bookmark
from edge_agent.sources.signals import Unreachable, Unreadable
from wire.broker_check import Finding

_MIN_RETRY_S, _MAX_RETRY_S = 0.5, 10.0
_BOOKMARK_INTERVAL_S = 10.0  # without alarms: a gap after a crash begins at most this much too early


class Device(Protocol):
    """A controller whose signals are polled; ``Unreachable`` from any method ends the connection."""

    @property
    def title(self) -> str: ...

    @property
    def signals(self) -> Sequence[str]: ...

    def open(self) -> None:
        """Connect."""

    def read(self, signal: str) -> Collection[str]:
        """Return the names of a signal's active alarms, or raise :class:`Unreadable`."""
        ...

    def close(self) -> None:
        """Disconnect."""


class Polled:
    """Polls a device for ever; remembers active alarms in the bookmark, so a restart does not raise them again."""

    def __init__(self, device: Device, context: Context, *, poll: float, debounce: float) -> None:
        self._device, self._context, self._poll, self._debounce = device, context, poll, debounce
        self._unreadable: dict[str, tuple[str, datetime]] = {}

    def batches(self, bookmark: str | None, stop: Event) -> Iterator[SourceBatch]:
        """Yield the edges between polls."""
        seen, stored = read_bookmark(bookmark)
        detector = EdgeDetector(self._debounce, stored.get("active", {}))
        outage = Outage(self._device.title, seen)
        opened, retry, written = False, _MIN_RETRY_S, float("-inf")

        def batch(notice: Notice, edges: list[Edge], skipped: list[str]) -> SourceBatch:
            numbered = number_edges(edges, self._context)
            position = write_bookmark(outage.seen, active=detector.signals())
            return SourceBatch(
                numbered.raised,
                position,
                skipped + numbered.skipped,
                notice.lost,
                notice.warning,
                numbered.cleared,
            )

        try:
            while not stop.is_set():
                started = time.monotonic()
                try:
                    if not opened:
                        self._device.open()
                        opened = True
                    edges, skipped, recovered = self._poll_once(detector)
                except Unreachable as error:
                    self._device.close()
                    opened = False
                    notice = outage.failed(str(error), self._context.now())
                    if notice is not None:
                        yield batch(notice, [], [])
                    stop.wait(retry)
                    retry = min(retry * 2, _MAX_RETRY_S)
                    continue
                retry = _MIN_RETRY_S
                lost = outage.succeeded(self._context.now()) or recovered
                if edges or skipped or lost or started - written >= _BOOKMARK_INTERVAL_S:
                    written = started
                    yield batch(Notice(lost=lost), edges, skipped)
                stop.wait(max(0.0, self._poll - (time.monotonic() - started)))
            yield batch(Notice(), [], [])
        finally:
            self._device.close()

    def check(self) -> Iterator[Finding]:
        """Yield whether the device is reachable, and each signal readable."""
        try:
            self._device.open()
            yield Finding("source", ok=True, message=f"{self._device.title} answers")
            for signal in self._device.signals:
                yield self._check_signal(signal)
        except Unreachable as error:
            yield Finding("source", ok=False, message=f"cannot read {self._device.title}: {error}")
        finally:
            self._device.close()

    def _check_signal(self, signal: str) -> Finding:
        try:
            active = sorted(self._device.read(signal))
        except Unreadable as error:
            return Finding(signal, ok=False, message=f"{error}; correct its address or its type")
        return Finding(signal, ok=True, message=f"active now: {', '.join(active) or 'no alarm'}")

    def _poll_once(self, detector: EdgeDetector) -> tuple[list[Edge], list[str], Lost | None]:
        edges: list[Edge] = []
        skipped: list[str] = []
        lost: Lost | None = None
        for signal in self._device.signals:
            try:
                active = self._device.read(signal)
            except Unreadable as error:
                message, since = self._unreadable.get(signal, ("", self._context.now()))
                if message != str(error):
                    skipped.append(f"{signal}: {error}")
                    self._unreadable[signal] = (str(error), since)
                continue
            edges += detector.update(signal, active, self._context.now(), time.monotonic())
            if signal in self._unreadable:
                message, since = self._unreadable.pop(signal)
                lost = Lost(f"{signal} could not be read: {message}. Its alarms of that time are unknown.", since)
        return edges, skipped, lost
