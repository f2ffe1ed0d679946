"""Send one signed HTTP request to a webhook.

The host name is resolved here and the checked address is connected to, so that a name cannot lead to an address
that is not allowed, nor resolve differently between check and connection.
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
from service.notifications.webhook import Address, AllowedAddresses, DeliveryResult, status_text
from wire.signature import DELIVERY, SIGNATURE, sign

_TIMEOUT_S = 5.0
_MAX_ERROR_CHARS = 200
_MAX_ADDRESSES = 4  # of one host name that are tried


class WebhookClient:
    """Follows no redirects, uses no proxy settings or cookies, reads only the status of a response."""

    def __init__(
        self,
        *,
        timeout: float = _TIMEOUT_S,
        wall: Callable[[], float] = time.time,
        agent: str,
        allowed: AllowedAddresses,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._timeout, self._wall = timeout, wall
        self._headers = {"Content-Type": "application/json", "User-Agent": agent}
        self.allowed, self._given_tls = allowed, tls

    def send(self, url: str, secret: str, key: str, body: bytes) -> DeliveryResult:
        """Return the result of one attempt; a connection error is a result without status."""
        signed = {SIGNATURE: sign(secret, body, int(self._wall())), DELIVERY: key}
        started = time.monotonic()
        try:
            # In an event loop one timeout covers the whole exchange, however slowly bytes arrive.
            status = asyncio.run(self._post(httpx.URL(url), body, self._headers | signed))
            return DeliveryResult(status, status_text(status, None), time.monotonic() - started)
        except InputRejected as error:
            reason = str(error)
        except (httpx.TimeoutException, TimeoutError):
            reason = f"No response within {self._timeout:g} seconds."
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            reason = f"The receiver could not be reached: {_printable(_cause(error)).rstrip('.')}."
        return DeliveryResult(None, reason, time.monotonic() - started)

    async def _post(self, url: httpx.URL, body: bytes, headers: dict[str, str]) -> int:
        async with (
            asyncio.timeout(self._timeout),
            httpx.AsyncClient(
                timeout=self._timeout, follow_redirects=False, trust_env=False, verify=self._tls
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
                    response = await client.send(request, stream=True)
                except httpx.ConnectError as error:
                    failure = error
                    continue
                await response.aclose()
                return response.status_code
            raise failure or httpx.ConnectError("the host name has no address")

    async def _addresses(self, url: httpx.URL) -> list[Address]:
        """Return the allowed addresses of a host; raise :class:`InputRejected` if all are refused."""
        port = url.port or {"https": 443}.get(url.scheme, 80)
        resolved = await asyncio.get_running_loop().getaddrinfo(
            url.raw_host.decode("ascii"), port, type=socket.SOCK_STREAM
        )
        addresses = list(dict.fromkeys(ip_address(str(info[4][0]).partition("%")[0]) for info in resolved))
        allowed, refusal = [], None
        for address in addresses:
            try:
                self.allowed.check(address)
                allowed.append(address)
            except InputRejected as error:
                refusal = error
        if refusal is not None and not allowed:
            raise refusal
        return allowed[:_MAX_ADDRESSES]

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """The system's certificate authorities; cached, because loading takes longer than a delivery."""
        return self._given_tls or ssl.create_default_context()


def _cause(error: BaseException) -> str:
    """Return the text of the innermost error; outer ones only say that all attempts failed."""
    text, inner = repr(error), error
    while True:
        text = str(inner) or text
        grouped = inner.exceptions[:1] if isinstance(inner, BaseExceptionGroup) else ()
        cause = inner.__cause__ or inner.__context__ or next(iter(grouped), None)
        if cause is None:
            break
        inner = cause
    if isinstance(inner, OSError) and inner.errno and not isinstance(inner, ssl.SSLError | socket.gaierror):
        return os.strerror(inner.errno)
    return text


def _printable(text: str) -> str:
    """Return text as one line of printable characters."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:_MAX_ERROR_CHARS]
