"""How fast events come in, and how long they were on their way: small rings that ingest feeds."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock
from typing import NamedTuple

_SECONDS = 900  # the longest span that can be asked for
_RECENT = 10_000  # events whose lag is remembered


class Lag(NamedTuple):
    """Seconds of plant time between an alarm and its commit, over the most recent events."""

    median: float | None
    p95: float | None
    events: int


class Pace:
    """Counts events by the second of the process's clock, and remembers the lag of the last ones."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._began = monotonic()
        self._lock = Lock()
        self._seconds: deque[tuple[int, int]] = deque()
        self._lags: deque[int] = deque(maxlen=_RECENT)

    def note(self, events: int, lags_us: Sequence[int] = ()) -> None:
        """Count events that were just committed; a negative lag, from an agent whose clock is ahead, is none."""
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
