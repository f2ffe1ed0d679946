"""Request ids, HTTP metrics and the access log."""

import logging
import re
import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from service.http.histogram import Histogram

log = logging.getLogger(__name__)

REQUEST_ID = "X-Request-Id"
_VALID_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_READ_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_OTHER = "other"  # unknown routes share one series
_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_MAX_LOGGED_PATH = 200


@dataclass
class HttpMetrics:
    """Counters since the start; written by the server's event loop."""

    answers: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # by method, route and class of status
    seconds: dict[tuple[str, str], Histogram] = field(default_factory=dict)  # until the response began
    pages: int = 0  # open in browsers

    def record(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a response."""
        method = method if method in _METHODS else _OTHER
        self.answers[method, route, f"{status // 100}xx"] += 1
        if (method, route) not in self.seconds:
            self.seconds[method, route] = Histogram(_BUCKETS_S)
        self.seconds[method, route].add(seconds)


class RequestMiddleware:
    """ASGI middleware around API and pages; requests from the pages to the API do not pass it."""

    def __init__(
        self, app: ASGIApp, traffic: HttpMetrics, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._app, self._traffic, self._monotonic = app, traffic, monotonic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] == "http":
            request = _request_id(Headers(scope=scope).get(REQUEST_ID))
            with bound_contextvars(request_id=request):
                await self._answer(scope, receive, send, request)
        elif scope["type"] == "websocket":
            self._traffic.pages += 1
            try:
                await self._app(scope, receive, send)
            finally:
                self._traffic.pages -= 1
        else:
            await self._app(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, request: str) -> None:
        started, begun, status = self._monotonic(), 0.0, 0

        async def begin(message: Message) -> None:
            nonlocal begun, status
            if message["type"] == "http.response.start":
                begun, status = self._monotonic(), message["status"]
                MutableHeaders(scope=message)[REQUEST_ID] = request
            await send(message)

        try:
            await self._app(scope, receive, begin)
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"][:_MAX_LOGGED_PATH])
            if not status:
                raise
        finally:
            status = status or HTTPStatus.INTERNAL_SERVER_ERROR
            route = getattr(scope.get("route"), "path", _OTHER)
            self._traffic.record(scope["method"], route, status, (begun or self._monotonic()) - started)
            _log_request(scope, status, self._monotonic() - started)


def _request_id(given: str | None) -> str:
    """Return the client's request id if it is valid, or a new one."""
    return given if given and _VALID_ID.fullmatch(given) else secrets.token_hex(8)


def _log_request(scope: Scope, status: int, seconds: float) -> None:
    """Log writes at INFO, failures at WARNING, reads at DEBUG; never queries or headers, which may be secret."""
    level = logging.DEBUG if scope["method"] in _READ_METHODS else logging.INFO
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        level = logging.WARNING
    client = scope.get("client")
    more = {"status": int(status), "seconds": round(seconds, 4), "client": client[0] if client else None}
    log.log(level, "%s %s", scope["method"], scope["path"][:_MAX_LOGGED_PATH], extra=more)
