"""Flow control: limit the events in flight by how fast acks return (AIMD).

A backlog drains at full speed while there is capacity, and slows down when acks are slow, so that a fleet that
reconnects at once shares the capacity.
"""

import time
from collections import deque
from collections.abc import Callable

MIN_SIZE, INITIAL_SIZE, MAX_SIZE = 50, 1000, 5000  # events
STEP = 500
FAST_ACK_S, SLOW_ACK_S = 0.5, 2.0


class SendWindow:
    """The number of events allowed in flight; grows by a step per fast ack, halves for a slow one."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._in_flight: deque[tuple[int, float]] = deque()  # the last seq of each batch, and when it was sent
        self.size = INITIAL_SIZE

    def sent(self, last_seq: int) -> None:
        """Record that a batch which ends with this seq was sent."""
        self._in_flight.append((last_seq, self._monotonic()))

    def acked(self, up_to: int) -> None:
        """Record that the service has committed everything up to a seq, and adapt the size."""
        ack_s = None
        while self._in_flight and self._in_flight[0][0] <= up_to:
            _, sent_at = self._in_flight.popleft()
            ack_s = self._monotonic() - sent_at
        if ack_s is None:
            return
        if ack_s > SLOW_ACK_S:
            self.size = max(MIN_SIZE, self.size // 2)
        elif ack_s < FAST_ACK_S:
            self.size = min(MAX_SIZE, self.size + STEP)

    def reset(self, *, overdue: bool) -> None:
        """Clear what was in flight, because it is sent again; halve the size if acks are overdue."""
        self._in_flight.clear()
        self.size = max(MIN_SIZE, self.size // 2) if overdue else INITIAL_SIZE
