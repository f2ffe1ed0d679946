"""Webhooks: filter, retry schedule, and the addresses that may be sent to."""

import socket
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

from service.errors import InputRejected
from service.notifications.models import Notification
from wire.enums import DeliveryState, Severity
from wire.identity import MachineId
from wire.rest.policies import NotificationPolicy

_FIRST_RETRY, _MAX_RETRY, _RETRY_FOR = timedelta(seconds=5), timedelta(hours=2), timedelta(hours=24)
_RANK: Final = {severity.value: rank for rank, severity in enumerate(Severity)}
_MAX_PORT = 65535

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
_NAT64 = ip_network("64:ff9b::/96")
_THIS_HOST = ip_network("0.0.0.0/8")
_IPV4_BITS = 0xFFFFFFFF


@dataclass(frozen=True)
class Webhook:
    """An HTTP receiver of notifications; ``error`` says why it is disabled."""

    id: int
    url: str
    secret: str
    severity: Severity
    site: str | None
    machine: str | None
    enabled: bool
    created_at: datetime
    error: str | None = None
    policy: NotificationPolicy | None = None  # None: that of the machine's site

    def covers(self, machine: MachineId) -> bool:
        """Return whether the machine is in its scope."""
        return self.site in {None, machine.site} and self.machine in {None, machine.machine}

    def accepts(self, machine: MachineId, severity: str) -> bool:
        """Return whether notifications of this machine and severity are sent to it."""
        return self.enabled and self.covers(machine) and _RANK.get(severity, 0) >= _RANK[self.severity]


class DeliveryBacklog(NamedTuple):
    """How many deliveries are waiting, and since when the oldest."""

    number: int
    since: datetime | None


@dataclass(frozen=True)
class WebhookDelivery:
    """One notification on its way to one webhook; times are wall time.

    ``key`` is sent with every attempt, so that a receiver can drop duplicates.
    """

    id: int
    key: UUID
    webhook: int
    notification: int
    created_at: datetime
    attempts: int = 0
    next_try: datetime | None = None
    status: int | None = None
    answer: str | None = None
    delivered_at: datetime | None = None
    given_up_at: datetime | None = None

    @property
    def state(self) -> DeliveryState:
        if self.delivered_at is not None:
            return DeliveryState.DELIVERED
        return DeliveryState.WAITING if self.given_up_at is None else DeliveryState.GIVEN_UP


class DeliveryJob(NamedTuple):
    """A claimed delivery with its webhook and notification."""

    delivery: WebhookDelivery
    webhook: Webhook
    notification: Notification


class DeliveryResult(NamedTuple):
    """The HTTP status of an attempt, or None and the error.

    The response body is never kept: it may hold secrets of the receiver's network.
    """

    status: int | None
    text: str
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the status is 2xx; redirects are not followed."""
        return self.status is not None and HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES

    @property
    def gone(self) -> bool:
        return self.status == HTTPStatus.GONE


def status_text(status: int | None, error: str | None) -> str:
    """Return the standard phrase of a status that is not 2xx; without a status the error."""
    if status is None:
        return error or ""
    try:
        return "" if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES else HTTPStatus(status).phrase
    except ValueError:
        return ""


def backoff(attempts: int, chance: float) -> timedelta:
    """Return the delay after a number of failed attempts: doubled from 5 s to 2 h.

    ``chance`` in [0, 1) adds jitter, so that not all deliveries hit a recovered receiver at once.
    """
    delay: timedelta = min(_FIRST_RETRY * 2 ** min(max(attempts - 1, 0), 30), _MAX_RETRY)
    return delay * (0.75 + 0.5 * chance)


def next_try(delivery: WebhookDelivery, *, now: datetime, chance: float) -> datetime | None:
    """Return the time of the next attempt after a failure, or None after a day of attempts."""
    at = now + backoff(delivery.attempts, chance)
    return at if at <= delivery.created_at + _RETRY_FOR else None


@dataclass(frozen=True)
class AllowedAddresses:
    """Every public address, and those in ``networks``; never a link-local, multicast or unspecified one."""

    networks: tuple[Network, ...] = ()

    def check(self, address: Address) -> None:
        """Raise :class:`InputRejected` for an address that is not allowed."""
        inner = embedded_ipv4(address)
        for candidate in (address, inner):
            if (
                candidate.is_link_local
                or candidate.is_multicast
                or candidate.is_unspecified
                or candidate in _THIS_HOST
            ):
                raise InputRejected(f"{address} is not a valid receiver address. Name the host of the receiver.")
        if not inner.is_global and not any(inner in network for network in self.networks):
            raise InputRejected(
                f"{address} is not a public address. To allow webhooks to it, add its network to "
                "ALARMCAST_WEBHOOK_NETWORKS, for example 192.168.10.0/24."
            )


def embedded_ipv4(address: Address) -> Address:
    """Return the IPv4 address embedded in an IPv6 address, or the address itself."""
    if not isinstance(address, IPv6Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
    if inner is None and (address in _NAT64 or 1 < int(address) <= _IPV4_BITS):
        inner = IPv4Address(int(address) & _IPV4_BITS)
    return inner or address


def parse_address(host: str) -> Address | None:
    """Return the address that a host is written as, also in decimal or hexadecimal form; None for a name."""
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host))  # the system reads 0x7f.1 and 2130706433 like this
    except (OSError, UnicodeError):
        return None


def check_url(url: str, allowed: AllowedAddresses) -> str:
    """Return the URL if it may be used, or raise :class:`InputRejected`.

    Host names are resolved, and their addresses checked, at every delivery.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InputRejected("The webhook URL is not valid. Use the form https://host/path.") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InputRejected("The webhook URL must start with http:// or https:// and name a host.")
    if port is not None and not 0 < port <= _MAX_PORT:
        raise InputRejected("The webhook URL has an invalid port.")
    if parts.username is not None or parts.password is not None:
        raise InputRejected("Remove user and password from the webhook URL; deliveries are signed instead.")
    if parts.fragment:
        raise InputRejected("Remove the fragment (after #) from the webhook URL; it is never sent.")
    if any(char.isspace() or not char.isprintable() for char in url):
        raise InputRejected("The webhook URL contains a space. Remove it or write it as %20.")
    address = parse_address(parts.hostname)
    if address is not None:
        allowed.check(address)
    return url
