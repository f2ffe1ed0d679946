"""Which network addresses webhooks may be sent to, decided by the address itself and not by how it is written."""

import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from service.errors import InputRejected

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
_TRANSLATED = ip_network("64:ff9b::/96")  # IPv4 as a network without IPv4 writes it
_THIS_HOST = ip_network("0.0.0.0/8")
_LOW_BITS = 0xFFFFFFFF


@dataclass(frozen=True)
class Receivers:
    """Every public address, and of others those in ``networks``; never one of the link itself, or of nobody."""

    networks: tuple[Network, ...] = ()

    def insist_on(self, address: Address) -> None:
        """Raise :class:`InputRejected` for an address that nothing may be sent to."""
        inner = plain(address)
        for one in (address, inner):
            if one.is_link_local or one.is_multicast or one.is_unspecified or one in _THIS_HOST:
                raise InputRejected(f"{address} is no address of a receiver. Name the host that takes notices.")
        if not inner.is_global and not any(inner in network for network in self.networks):
            raise InputRejected(
                f"{address} is not a public address. If webhooks may be sent there, let whoever runs the service "
                "add its network to ALARMCAST_WEBHOOK_NETWORKS, for example 192.168.10.0/24."
            )


def plain(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address stands for, or the address itself."""
    if not isinstance(address, IPv6Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
    if inner is None and (address in _TRANSLATED or 1 < int(address) <= _LOW_BITS):
        inner = IPv4Address(int(address) & _LOW_BITS)
    return inner or address


def literal(host: str) -> Address | None:
    """Return the address that a host is written as, also as one number or in hexadecimal; None for a name."""
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host))  # the system reads 0x7f.1 and 2130706433 like this
    except (OSError, UnicodeError):
        return None
