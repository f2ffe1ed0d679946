"""One HTTP request to a receiver of notices: signed, short of patience, and led nowhere else.

A name is looked up here, its addresses are checked, and one of those is connected to: so no name can lead to an
address that is not allowed, nor change its meaning between the check and the connection.
"""

import asyncio
import os
import socket
import ssl
import time
from collections.abc import Callable
from functools import cached_property
from ipaddress import ip_address

import httpx

from service.errors import InputRejected
from service.notifications.webhook import DeliveryResult, in_words
from service.notifications.webhook_addresses import Address, Receivers
from wire.signature import DELIVERY, SIGNATURE, sign

_SECONDS = 5.0
_ENOUGH = 200  # characters of a reason that are kept
_MOST_ADDRESSES = 4  # of one name that are tried


class WebhookClient:
    """Follows no redirects, reads no proxy settings, keeps no cookies, takes only the status of an answer."""

    def __init__(
        self,
        *,
        seconds: float = _SECONDS,
        wall: Callable[[], float] = time.time,
        agent: str,
        receivers: Receivers,
        authorities: ssl.SSLContext | None = None,
    ) -> None:
        self._seconds, self._wall = seconds, wall
        self._headers = {"Content-Type": "application/json", "User-Agent": agent}
        self.receivers, self._given = receivers, authorities

    def send(self, url: str, secret: str, key: str, body: bytes) -> DeliveryResult:
        """Return what the receiver said; that it could not be reached is an answer too."""
        signed = {SIGNATURE: sign(secret, body, int(self._wall())), DELIVERY: key}
        started = time.monotonic()
        try:
            # A loop of its own: only there can one deadline hold for all, however slowly the bytes drip.
            status = asyncio.run(self._post(httpx.URL(url), body, self._headers | signed))
            return DeliveryResult(status, in_words(status, None), time.monotonic() - started)
        except InputRejected as error:
            why = str(error)
        except (httpx.TimeoutException, TimeoutError):
            why = f"No answer within {self._seconds:g} seconds."
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            why = f"The receiver could not be reached: {_printable(_cause(error)).rstrip('.')}."
        return DeliveryResult(None, why, time.monotonic() - started)

    async def _post(self, url: httpx.URL, body: bytes, headers: dict[str, str]) -> int:
        async with (
            asyncio.timeout(self._seconds),
            httpx.AsyncClient(
                timeout=self._seconds, follow_redirects=False, trust_env=False, verify=self._authorities
            ) as client,
        ):
            failure: httpx.ConnectError | None = None
            for address in await self._addresses(url):
                request = client.build_request(
                    "POST",
                    url.copy_with(host=str(address)),
                    content=body,
                    headers=headers | {"Host": url.netloc.decode("ascii")},
                    extensions={"sni_hostname": url.raw_host.decode("ascii")},
                )
                try:
                    answer = await client.send(request, stream=True)
                except httpx.ConnectError as error:
                    failure = error
                    continue
                await answer.aclose()
                return answer.status_code
            raise failure or httpx.ConnectError("the name has no address")

    async def _addresses(self, url: httpx.URL) -> list[Address]:
        """Return the addresses of a host that may be sent to, or raise why none of them may."""
        port = url.port or {"https": 443}.get(url.scheme, 80)
        found = await asyncio.get_running_loop().getaddrinfo(
            url.raw_host.decode("ascii"), port, type=socket.SOCK_STREAM
        )
        addresses = list(dict.fromkeys(ip_address(str(one[4][0]).partition("%")[0]) for one in found))
        allowed, refusal = [], None
        for address in addresses:
            try:
                self.receivers.insist_on(address)
                allowed.append(address)
            except InputRejected as error:
                refusal = error
        if refusal is not None and not allowed:
            raise refusal
        return allowed[:_MOST_ADDRESSES]

    @cached_property
    def _authorities(self) -> ssl.SSLContext:
        """Whom the system trusts; read once, because that takes longer than a delivery."""
        return self._given or ssl.create_default_context()


def _cause(error: BaseException) -> str:
    """Return what the system said at the bottom of it; what lies above only says that all attempts failed."""
    words, under = repr(error), error
    while True:
        words = str(under) or words
        several = under.exceptions[:1] if isinstance(under, BaseExceptionGroup) else ()
        deeper = under.__cause__ or under.__context__ or next(iter(several), None)
        if deeper is None:
            break
        under = deeper
    if isinstance(under, OSError) and under.errno and not isinstance(under, ssl.SSLError | socket.gaierror):
        return os.strerror(under.errno)
    return words


def _printable(text: str) -> str:
    """Return text on one line that every database takes."""
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())[:_ENOUGH]
