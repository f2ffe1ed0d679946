"""Who is told of notices over HTTP, which ones, and how patiently."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final, NamedTuple, Protocol
from urllib.parse import urlsplit
from uuid import UUID

from service.errors import InputRejected
from service.notifications.models import Notification
from service.notifications.webhook_addresses import Receivers, literal
from wire.enums import DeliveryState, Severity
from wire.identity import MachineId

_FIRST, _LONGEST, _PATIENCE = timedelta(seconds=5), timedelta(hours=2), timedelta(hours=24)
_RANK: Final = {word.value: rank for rank, word in enumerate(Severity)}
_MAX_PORT = 65535


@dataclass(frozen=True)
class Webhook:
    """An address that is told; ``trouble`` says why it is switched off, if we did that."""

    id: int
    url: str
    secret: str
    severity: Severity
    site: str | None
    machine: str | None
    enabled: bool
    created_at: datetime
    error: str | None = None

    def wants(self, machine: MachineId, severity: str) -> bool:
        """Say whether notices of this machine and severity go there."""
        here = self.site in {None, machine.site} and self.machine in {None, machine.machine}
        return self.enabled and here and _RANK.get(severity, 0) >= _RANK[self.severity]


class DeliveryBacklog(NamedTuple):
    """How many deliveries are still to be made, and when the oldest of them came up."""

    number: int
    since: datetime | None


@dataclass(frozen=True)
class WebhookDelivery:
    """One notice on its way to one webhook; its times are wall time, because receivers live in it.

    ``key`` goes along with every try, so that a receiver can take it once.
    """

    id: int
    key: UUID
    webhook: int
    notice: int
    created_at: datetime
    attempts: int = 0
    next_try: datetime | None = None
    status: int | None = None
    answer: str | None = None
    delivered_at: datetime | None = None
    given_up_at: datetime | None = None

    @property
    def state(self) -> DeliveryState:
        """How far it is."""
        if self.delivered_at is not None:
            return DeliveryState.DELIVERED
        return DeliveryState.WAITING if self.given_up_at is None else DeliveryState.GIVEN_UP


class DeliveryJob(NamedTuple):
    """All that is needed to deliver."""

    delivery: WebhookDelivery
    webhook: Webhook
    notice: Notification


class DeliveryResult(NamedTuple):
    """What a receiver said: a status, or none and why there was none.

    Of what it wrote nothing is kept: it may be a secret of its network, and whoever asks may be of one site only.
    """

    status: int | None
    text: str
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the receiver took it; a redirect is not followed, so it has not."""
        return self.status is not None and HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES

    @property
    def gone(self) -> bool:
        """Whether the receiver wants nothing any more."""
        return self.status == HTTPStatus.GONE


def in_words(status: int | None, text: str | None) -> str:
    """Return what became of an attempt, in words that are not the receiver's."""
    if status is None:
        return text or ""
    try:
        return "" if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES else HTTPStatus(status).phrase
    except ValueError:
        return ""


def backoff(attempts: int, chance: float) -> timedelta:
    """Return how long to wait after that many failed attempts; ``chance`` in [0, 1) spreads it by a half.

    Doubles from five seconds to two hours, so that a receiver that comes back is not met by all at once.
    """
    doubled: timedelta = min(_FIRST * 2 ** min(max(attempts - 1, 0), 30), _LONGEST)
    return doubled * (0.75 + 0.5 * chance)


def next_try(delivery: WebhookDelivery, *, now: datetime, chance: float) -> datetime | None:
    """Return when a delivery that just failed is tried again, or None if a day was enough."""
    then = now + backoff(delivery.attempts, chance)
    return then if then <= delivery.created_at + _PATIENCE else None


def checked_url(url: str, receivers: Receivers) -> str:
    """Return an address that may be told, or say what is wrong with it.

    A host's name is looked up, and its addresses checked, whenever something is sent.
    """
    try:
        parts = urlsplit(url)
        number = parts.port
    except ValueError:
        raise InputRejected("The webhook's address cannot be read; write it as https://host/path.") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InputRejected("A webhook's address must begin with http:// or https:// and name a host.")
    if number is not None and not 0 < number <= _MAX_PORT:
        raise InputRejected("The webhook's address has a port that does not exist.")
    if parts.username is not None or parts.password is not None:
        raise InputRejected("Leave user and password out of the webhook's address; deliveries are signed instead.")
    if parts.fragment:
        raise InputRejected("Leave out what follows the # of the webhook's address; it is never sent.")
    if any(one.isspace() or not one.isprintable() for one in url):
        raise InputRejected("The webhook's address has a space in it; leave it out, or write it as %20.")
    address = literal(parts.hostname)
    if address is not None:
        receivers.insist_on(address)
    return url


class WebhookRegistry(Protocol):
    """Who is told of notices."""

    def add(self, webhook: Webhook, *, who: str, reason: str | None) -> Webhook: ...
    def all(self) -> list[Webhook]: ...
    def get(self, number: int) -> Webhook: ...
    def switch(
        self, webhook: Webhook, *, enabled: bool, at: datetime, who: str, reason: str | None
    ) -> Webhook: ...
    def remove(self, webhook: Webhook, *, at: datetime, who: str, reason: str | None) -> None: ...
