"""Delay before the next connection: short after a failure, long if another agent has the same name."""

import random
from dataclasses import dataclass

MIN_DELAY_S, MAX_DELAY_S = 0.5, 4.0  # with jitter: all agents of a plant lose the broker at once
MIN_DUPLICATE_DELAY_S, MAX_DUPLICATE_DELAY_S = 60.0, 1800.0


@dataclass
class ReconnectBackoff:
    """Exponential backoff with jitter; a connection that worked resets it."""

    _delay: float = MIN_DELAY_S
    _duplicate_delay: float = MIN_DUPLICATE_DELAY_S

    def next_delay(self, lived_s: float | None, *, duplicate: bool) -> float:
        """Return the seconds to wait; ``lived_s`` is how long the last connection worked, None if it did not."""
        if duplicate:
            delay, self._duplicate_delay = (
                self._duplicate_delay,
                min(self._duplicate_delay * 2, MAX_DUPLICATE_DELAY_S),
            )
            return delay * random.uniform(0.8, 1.2)  # noqa: S311
        if lived_s is None:
            self._delay = min(self._delay * 2, MAX_DELAY_S)
        else:
            self._delay, self._duplicate_delay = MIN_DELAY_S, MIN_DUPLICATE_DELAY_S
        return self._delay * random.uniform(0.5, 1.0)  # noqa: S311
