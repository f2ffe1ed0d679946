"""Places that are limited in number, counted under several names at once: in all, by person, by site."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock


class Full(Exception):
    """There is no place left under one of the names."""

    def __init__(self, name: str, most: int) -> None:
        super().__init__(f"{name}: all {most} places are taken")
        self.name, self.most = name, most


@dataclass
class Places:
    """Who has a place; safe to use from any thread."""

    _taken: Counter[str] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    def take(self, limits: Mapping[str, int]) -> None:
        """Take a place under every name, or raise :class:`Full` for the first that has as many as it may."""
        with self._lock:
            for name, most in limits.items():
                if self._taken[name] >= most:
                    raise Full(name, most)
            self._taken.update(limits.keys())

    def give_back(self, limits: Mapping[str, int]) -> None:
        """Give back a place that was taken."""
        with self._lock:
            self._taken.subtract(limits.keys())
            for name in limits:
                if self._taken[name] <= 0:
                    del self._taken[name]

    @contextmanager
    def taken(self, limits: Mapping[str, int]) -> Iterator[None]:
        """Hold a place."""
        self.take(limits)
        try:
            yield
        finally:
            self.give_back(limits)

    def count(self, name: str) -> int:
        """Return how many places are taken under a name."""
        with self._lock:
            return self._taken.get(name, 0)
