"""One HTTP request to a receiver of notices: signed, short of patience, and led nowhere else."""

import asyncio
import os
import socket
import ssl
import time
from collections.abc import Callable
from functools import cached_property

import httpx

from service.core.webhook import Answer
from wire.signature import DELIVERY, SIGNATURE, sign

_SECONDS = 5.0
_ENOUGH = 200  # characters of an answer that are kept
_READ = 4 * _ENOUGH


class HttpPost:
    """Follows no redirects, reads no proxy settings, keeps no cookies, takes only the beginning of an answer."""

    def __init__(self, *, seconds: float = _SECONDS, wall: Callable[[], float] = time.time, agent: str) -> None:
        self._seconds, self._wall = seconds, wall
        self._headers = {"Content-Type": "application/json", "User-Agent": agent}

    def send(self, url: str, secret: str, key: str, body: bytes) -> Answer:
        """Return what the receiver said; that it could not be reached is an answer too."""
        signed = {SIGNATURE: sign(secret, body, int(self._wall())), DELIVERY: key}
        started = time.monotonic()
        try:
            # A loop of its own: only there can one deadline hold for all, however slowly the bytes drip.
            status, text = asyncio.run(self._post(url, body, self._headers | signed))
            return Answer(status, text, time.monotonic() - started)
        except (httpx.TimeoutException, TimeoutError):
            why = f"No answer within {self._seconds:g} seconds."
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            why = f"The receiver could not be reached: {_printable(_cause(error)).rstrip('.')}."
        return Answer(None, why, time.monotonic() - started)

    async def _post(self, url: str, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
        deadline = asyncio.get_running_loop().time() + self._seconds
        async with httpx.AsyncClient(
            timeout=self._seconds, follow_redirects=False, trust_env=False, verify=self._authorities
        ) as client:
            request = client.build_request("POST", url, content=body, headers=headers)
            async with asyncio.timeout_at(deadline):
                answer = await client.send(request, stream=True)
            try:
                return answer.status_code, await self._beginning(answer, deadline)
            finally:
                await answer.aclose()

    @cached_property
    def _authorities(self) -> ssl.SSLContext:
        """Whom the system trusts; read once, because that takes longer than a delivery."""
        return ssl.create_default_context()

    async def _beginning(self, answer: httpx.Response, deadline: float) -> str:
        """Read only as much as is kept, and only until the deadline; the status has been said already."""
        read = b""
        try:
            async with asyncio.timeout_at(deadline):
                async for piece in answer.aiter_bytes():
                    read += piece[: _READ - len(read)]
                    if len(read) >= _READ:
                        break
        except (httpx.HTTPError, TimeoutError):
            pass
        return _printable(read.decode(errors="replace"))


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
