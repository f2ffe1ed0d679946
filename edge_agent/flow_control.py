"""How much may be under way at once: more while acks come back fast, less as soon as they take their time.

A backlog drains at full speed where there is room, and shrinks to a trickle where other machines' events wait
behind it: whoever sees slow acks steps back, so a fleet that comes back together shares what there is.
"""

import time
from collections import deque
from collections.abc import Callable

SMALLEST, FIRST, LARGEST = 50, 1000, 5000
STEP = 500
FAST, SLOW = 0.5, 2.0  # seconds from a batch to its ack


class SendWindow:
    """Counts events; grows by a step for every fast ack, halves for a slow one, at most once a batch."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._under_way: deque[tuple[int, float]] = deque()  # the last number of each batch, and when it was sent
        self.size = FIRST

    def sent(self, last_seq: int) -> None:
        """Note that a batch that ends with this number is under way."""
        self._under_way.append((last_seq, self._monotonic()))

    def acked(self, up_to: int) -> None:
        """Note that the service has committed everything up to a number, and learn from how long it took."""
        took = None
        while self._under_way and self._under_way[0][0] <= up_to:
            _, sent_at = self._under_way.popleft()
            took = self._monotonic() - sent_at
        if took is None:
            return
        if took > SLOW:
            self.size = max(SMALLEST, self.size // 2)
        elif took < FAST:
            self.size = min(LARGEST, self.size + STEP)

    def reset(self, *, overdue: bool) -> None:
        """Forget what was under way: it is sent again. Where acks are overdue, less goes out at once."""
        self._under_way.clear()
        self.size = max(SMALLEST, self.size // 2) if overdue else FIRST
