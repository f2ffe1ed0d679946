"""One HTTP request to a receiver of notices: signed, short of patience, and led nowhere else."""

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
            with (
                httpx.Client(
                    timeout=self._seconds, follow_redirects=False, trust_env=False, verify=self._authorities
                ) as client,
                client.stream("POST", url, content=body, headers=self._headers | signed) as answer,
            ):
                text = self._beginning(answer, started + self._seconds)
            return Answer(answer.status_code, text, time.monotonic() - started)
        except httpx.TimeoutException:
            why = f"No answer within {self._seconds:g} seconds."
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            why = f"The receiver could not be reached: {_printable(str(error) or repr(error))}."
        return Answer(None, why, time.monotonic() - started)

    @cached_property
    def _authorities(self) -> ssl.SSLContext:
        """Whom the system trusts; read once, because that takes longer than a delivery."""
        return ssl.create_default_context()

    def _beginning(self, answer: httpx.Response, deadline: float) -> str:
        """Read only as much as is kept, and only until the deadline; the status has been said already."""
        read = b""
        try:
            for piece in answer.iter_bytes():
                read += piece[: _READ - len(read)]
                if len(read) >= _READ or time.monotonic() > deadline:
                    break
        except httpx.HTTPError:
            pass
        return _printable(read.decode(errors="replace"))


def _printable(text: str) -> str:
    """Return text on one line that every database takes."""
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())[:_ENOUGH]
