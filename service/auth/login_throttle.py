"""Wrong passwords make the next try wait, longer each time; whoever asks politely is not kept."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from service.http.rate_limit import network_of

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


OF_ONE, OF_AN_ADDRESS = BackoffPolicy(free_attempts=5), BackoffPolicy(free_attempts=20)
# Anybody can try any name, so a name alone stays open to its owner: many tries are free, and no wait is long.
OF_A_NAME = BackoffPolicy(free_attempts=100, max_wait_s=60.0)
_MOST_FAMILIAR = 10_000  # names with an address; those who came longest ago are forgotten first
Count = tuple[AttemptThrottle, Hashable]


@dataclass(frozen=True)
class LoginAttempt:
    """One try and where it is counted: under a key of its own, and under some that others share."""

    own: Count
    shared: tuple[Count, ...] = ()

    @property
    def wait(self) -> float:
        """For how many seconds it must wait; nought if it may begin."""
        return max(throttle.wait(key) for throttle, key in (self.own, *self.shared))

    def begin(self) -> float:
        """Count it, unless it must wait; return for how many seconds it must."""
        counts = (self.own, *self.shared)
        waits = [throttle.attempt(key) for throttle, key in counts]
        if max(waits) > 0:
            for (throttle, key), wait in zip(counts, waits, strict=True):
                if wait <= 0:  # it was counted there, but it does not begin
                    throttle.refund(key)
        return max(waits)

    def cancel(self) -> None:
        """Count it no more, because nobody has judged it."""
        for throttle, key in (self.own, *self.shared):
            throttle.refund(key)

    def succeeded(self) -> None:
        """Forgive those before it; of what is shared, where some may have been others', only itself."""
        self.own[0].reset(self.own[1])
        for throttle, key in self.shared:
            throttle.refund(key)


@dataclass
class LoginThrottle:
    """Counts by name and address, by address, and, where a name has not signed in before, by name alone."""

    clock: Callable[[], float]
    pairs: AttemptThrottle = field(init=False)
    addresses: AttemptThrottle = field(init=False)
    names: AttemptThrottle = field(init=False)
    _familiar: "OrderedDict[tuple[str, str], None]" = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.pairs = AttemptThrottle(OF_ONE, self.clock)
        self.addresses = AttemptThrottle(OF_AN_ADDRESS, self.clock)
        self.names = AttemptThrottle(OF_A_NAME, self.clock)

    def attempt(self, name: str, address: str) -> LoginAttempt:
        """Return a try to sign in that is yet to begin; an IPv6 address counts as its whole network."""
        address = network_of(address)
        with self._lock:
            is_familiar = (name, address) in self._familiar
        there, anywhere = (self.addresses, address), (self.names, name)
        return LoginAttempt((self.pairs, (name, address)), (there,) if is_familiar else (there, anywhere))

    def remember_address(self, name: str, address: str) -> None:
        """Remember where somebody signed in, so that no guesses from elsewhere keep them out there."""
        address = network_of(address)
        with self._lock:
            self._familiar[name, address] = None
            self._familiar.move_to_end((name, address))
            while len(self._familiar) > _MOST_FAMILIAR:
                self._familiar.popitem(last=False)

    def reset(self, name: str) -> None:
        """Forget every try of a name, because it has another password now."""
        self.names.reset(name)
        self.pairs.reset_where(lambda pair: pair[0] == name)
