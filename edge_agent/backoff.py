"""How long to wait before the next connection: briefly after a blip, long where another agent has our name."""

import random
from dataclasses import dataclass

FIRST, MOST = 0.5, 4.0  # seconds; a plant's agents lose a broker together and must not return in one instant
AWAY_FIRST, AWAY_MOST = 60.0, 1800.0  # seconds that one of two agents of one name leaves to the other


@dataclass
class ReconnectBackoff:
    """Knows how the last connections ended."""

    _delay: float = FIRST
    _duplicate_delay: float = AWAY_FIRST

    def next_delay(self, lived: float | None, *, rival: bool) -> float:
        """Return the seconds to wait; ``lived`` is how long the last connection was good for, None if never."""
        if rival:
            wait, self._duplicate_delay = self._duplicate_delay, min(self._duplicate_delay * 2, AWAY_MOST)
            return wait * random.uniform(0.8, 1.2)  # noqa: S311
        if lived is None:
            self._delay = min(self._delay * 2, MOST)
        else:
            self._delay, self._duplicate_delay = FIRST, AWAY_FIRST
        return self._delay * random.uniform(0.5, 1.0)  # noqa: S311
