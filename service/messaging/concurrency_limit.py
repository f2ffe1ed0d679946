"""Concurrency limits counted under several names at once: in total, per user, per site."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock


class LimitReached(Exception):
    """As many are open under a name as it may have."""

    def __init__(self, name: str, most: int) -> None:
        super().__init__(f"{name}: all {most} are in use")
        self.name, self.most = name, most


@dataclass
class ConcurrencyLimit:
    """What is in use under each name; safe to use from any thread."""

    _taken: Counter[str] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    def take(self, limits: Mapping[str, int]) -> None:
        """Count one more under every name, or raise :class:`LimitReached` for the first that has its maximum."""
        with self._lock:
            for name, most in limits.items():
                if self._taken[name] >= most:
                    raise LimitReached(name, most)
            self._taken.update(limits.keys())

    def give_back(self, limits: Mapping[str, int]) -> None:
        with self._lock:
            self._taken.subtract(limits.keys())
            for name in limits:
                if self._taken[name] <= 0:
                    del self._taken[name]

    @contextmanager
    def taken(self, limits: Mapping[str, int]) -> Iterator[None]:
        """Take on entry, give back on exit."""
        self.take(limits)
        try:
            yield
        finally:
            self.give_back(limits)

    def count(self, name: str) -> int:
        with self._lock:
            return self._taken.get(name, 0)
