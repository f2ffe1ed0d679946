"""How often a question is asked again while the service is away or has no answer yet."""

from dataclasses import dataclass, field

from alarmcast.errors import Unavailable, Unreachable


@dataclass(frozen=True)
class RetryPolicy:
    """Ask again up to ``retries`` times, waiting as the service says, or ever longer, never over ``longest_wait``.

    Only questions (GET) are asked again: whether an order was carried out is not known when its answer is lost.
    """

    retries: int = 0
    longest_wait: float = 30.0  # seconds


@dataclass
class RetryState:
    """The tries of one call."""

    patience: RetryPolicy
    repeatable: bool
    made: int = field(default=0, init=False)

    def next_delay(self, failure: Unavailable | Unreachable) -> float:
        """Return the seconds until the next try, or raise the failure if this was the last."""
        self.made += 1
        if not self.repeatable or self.made > self.patience.retries:
            raise failure
        requested = failure.retry_after if isinstance(failure, Unavailable) else None
        return min(0.5 * 2**self.made if requested is None else requested, self.patience.longest_wait)
