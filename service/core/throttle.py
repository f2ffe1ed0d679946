"""Wrong passwords make the next try wait, longer each time; whoever asks politely is not kept."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

_MOST_KNOWN = 10_000  # names and addresses; the longest quiet are forgotten first


@dataclass(frozen=True)
class BackoffPolicy:
    """So many tries are free, then the wait doubles from a second up to the longest."""

    free_attempts: int
    max_wait_s: float = 900.0  # seconds
    reset_after_s: float = 3600.0  # seconds without a try


@dataclass
class AttemptThrottle:
    """Counts tries that have not succeeded, under any key: a name, an address, both."""

    policy: BackoffPolicy
    clock: Callable[[], float]
    _tries: "OrderedDict[Hashable, tuple[int, float]]" = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def wait(self, key: Hashable) -> float:
        """Return for how many seconds the next try must wait; nought if it may come now."""
        with self._lock:
            return self._wait(key, self.clock())

    def attempt(self, key: Hashable) -> float:
        """Count a try that has just begun, unless it must wait; return how long it must.

        Counted before it is judged, so that a thousand at once are a thousand and not one.
        """
        now = self.clock()
        with self._lock:
            wait = self._wait(key, now)
            if wait <= 0:
                count, _ = self._known(key, now)
                self._tries[key] = (count + 1, now)
                self._tries.move_to_end(key)
                while len(self._tries) > _MOST_KNOWN:
                    self._tries.popitem(last=False)
            return wait

    def reset(self, key: Hashable) -> None:
        """Forget the tries of a key, because one of them was right."""
        with self._lock:
            self._tries.pop(key, None)

    def reset_where(self, applies: Callable[[Any], bool]) -> None:
        """Forget the tries of all keys of which ``applies`` says so."""
        with self._lock:
            for key in [one for one in self._tries if applies(one)]:
                del self._tries[key]

    def refund(self, key: Hashable) -> None:
        """Take back one try, because it was right or nobody judged it; the others stay counted."""
        with self._lock:
            count, last = self._tries.get(key, (0, 0.0))
            if count > 1:
                self._tries[key] = (count - 1, last)
            else:
                self._tries.pop(key, None)

    def _known(self, key: Hashable, now: float) -> tuple[int, float]:
        count, last = self._tries.get(key, (0, now))
        return (0, now) if now - last > self.policy.reset_after_s else (count, last)

    def _wait(self, key: Hashable, now: float) -> float:
        count, last = self._known(key, now)
        over = count - self.policy.free_attempts
        if over < 0:
            return 0.0
        pause = min(2.0 ** min(over, 60), self.policy.max_wait_s)
        return float(max(0.0, last + pause - now))
