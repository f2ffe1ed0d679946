"""How many requests somebody may make: a bucket that fills steadily and is emptied by asking."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from threading import Lock

_MAX_KEYS = 10_000  # askers; those who asked longest ago are forgotten, their buckets being full again


@dataclass
class TokenBuckets:
    """One bucket for each who asks; a rate of nought lets everybody ask as often as they like."""

    rate: float  # a second
    burst: float
    clock: Callable[[], float]
    _levels: "OrderedDict[str, tuple[float, float]]" = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def take(self, who: str) -> float:
        """Take a request out of a bucket; return nought, or the seconds until there is one to take."""
        if self.rate <= 0:
            return 0.0
        now = self.clock()
        with self._lock:
            level, filled = self._levels.get(who, (self.burst, now))
            level = min(self.burst, level + max(0.0, now - filled) * self.rate)
            allowed = level >= 1
            self._levels[who] = (level - 1 if allowed else level, now)
            self._levels.move_to_end(who)
            while len(self._levels) > _MAX_KEYS:
                self._levels.popitem(last=False)
        return 0.0 if allowed else (1 - level) / self.rate

    def refund(self, who: str) -> None:
        """Put a request back that need not have been taken."""
        with self._lock:
            if who in self._levels:
                level, filled = self._levels[who]
                self._levels[who] = (min(self.burst, level + 1), filled)


_IPV6_PREFIX = 64  # one subscriber's network: whoever has one address of it has all


@lru_cache(maxsize=10_000)
def network_of(address: str) -> str:
    """Return what an address is counted as: IPv4 by itself, IPv6 by its /64, IPv4 inside IPv6 as IPv4."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ip_network((found, _IPV6_PREFIX), strict=False))
