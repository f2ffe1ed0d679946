"""A monotonic clock that a test sets."""

from dataclasses import dataclass


@dataclass
class FakeClock:
    """Returns ``now`` whenever it is called."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now
