"""Network addresses, as limits count them."""

from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network

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
