"""How fast events come in, and how long they were on their way: small rings and counts that ingest feeds."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock
from typing import NamedTuple

from service.http.histogram import Counted, Histogram

_SECONDS = 900  # the longest span that can be asked for
_RECENT = 10_000  # events whose lag is remembered
LATE = 3600.0  # seconds of plant time from which on an event changes more than the newest forecast
_LAGS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, LATE, 21_600.0, 86_400.0)


class Lag(NamedTuple):
    """Seconds of plant time between an alarm and its commit, over the most recent live events."""

    median: float | None
    p95: float | None
    events: int


class Totals(NamedTuple):
    """Events since the start: all, the lags of live ones, those of a backlog, and those that came late at all."""

    stored: int
    lags: Counted
    backfilled: int
    late: int


class IngestStats:
    """Counts events by the second of the process's clock, and remembers the lag of the last ones."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._began = monotonic()
        self._lock = Lock()
        self._seconds: deque[tuple[int, int]] = deque()
        self._lags: deque[int] = deque(maxlen=_RECENT)
        self._stored, self._histogram = 0, Histogram(_LAGS)
        self._backfilled = self._late = 0

    def record(self, events: int, lags_us: Sequence[int] = (), backfilled_us: Sequence[int] = ()) -> None:
        """Count events that were just committed; a negative lag, from an agent whose clock is ahead, is none.

        ``backfilled_us`` are the ages of events of a backlog: they waited for a connection, not for us.
        """
        if not events:
            return
        second = int(self._monotonic())
        with self._lock:
            if self._seconds and self._seconds[-1][0] == second:
                self._seconds[-1] = (second, self._seconds[-1][1] + events)
            else:
                self._seconds.append((second, events))
                while self._seconds[0][0] <= second - _SECONDS:
                    self._seconds.popleft()
            self._lags.extend(lags_us)
            self._stored += events
            self._histogram.add_all(lags_us, unit=1e-6)
            self._backfilled += len(backfilled_us)
            self._late += sum(lag > LATE * 1e6 for lags in (lags_us, backfilled_us) for lag in lags)

    @property
    def backfilled(self) -> int:
        """How many events of backlogs were stored since the start."""
        return self._backfilled

    def totals(self) -> Totals:
        """Return what was stored since the start; only events whose time is believed have a lag or an age."""
        with self._lock:
            return Totals(self._stored, self._histogram.read(), self._backfilled, self._late)

    def rate(self, seconds: int) -> float:
        """Return events a second over the last ``seconds``, or over all of its life while that is shorter."""
        now = self._monotonic()
        with self._lock:
            counted = sum(events for second, events in self._seconds if second > now - seconds)
        return counted / max(1.0, min(seconds, now - self._began))

    def lag(self) -> Lag:
        """Return how long the most recent events were on their way."""
        with self._lock:
            lags = list(self._lags)
        if not lags:
            return Lag(None, None, 0)
        lags.sort()
        median, p95 = (max(0, lags[int(share * (len(lags) - 1))]) / 1e6 for share in (0.5, 0.95))
        return Lag(median, p95, len(lags))
