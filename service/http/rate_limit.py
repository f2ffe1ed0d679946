"""Token buckets and limits of concurrent requests."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from threading import Lock

_MAX_KEYS = 10_000  # the least recently used are dropped; their buckets are full again


@dataclass
class TokenBuckets:
    """One bucket per key; a rate of zero means no limit."""

    rate: float  # requests per second
    burst: float
    clock: Callable[[], float]
    _levels: "OrderedDict[str, tuple[float, float]]" = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def take(self, key: str) -> float:
        """Take a token; return zero, or the seconds until there is one."""
        if self.rate <= 0:
            return 0.0
        now = self.clock()
        with self._lock:
            level, filled = self._levels.get(key, (self.burst, now))
            level = min(self.burst, level + max(0.0, now - filled) * self.rate)
            allowed = level >= 1
            self._levels[key] = (level - 1 if allowed else level, now)
            self._levels.move_to_end(key)
            while len(self._levels) > _MAX_KEYS:
                self._levels.popitem(last=False)
        return 0.0 if allowed else (1 - level) / self.rate

    def refund(self, key: str) -> None:
        """Put a token back."""
        with self._lock:
            if key in self._levels:
                level, filled = self._levels[key]
                self._levels[key] = (min(self.burst, level + 1), filled)


_IPV6_PREFIX = 64  # the network of one subscriber


@lru_cache(maxsize=10_000)
def network_of(address: str) -> str:
    """Return the key of an address: IPv4 itself, IPv6 its /64, IPv4-mapped IPv6 its IPv4 address."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(ip, IPv6Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ip_network((ip, _IPV6_PREFIX), strict=False))


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
