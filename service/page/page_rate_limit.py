"""Limits how often pages are drawn, how many websockets are open, and how large a request is."""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from fastapi import HTTPException, Request, WebSocket
from fastapi.responses import PlainTextResponse
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import Forbidden, ServiceError, TooLarge, TooMany, Unavailable
from service.page.texts import text
from wire.rest.auth import SESSION_COOKIE

# Files, many for each page, and the websocket of a page.
ASSETS = ("/static/", "/_nicegui/", "/_nicegui_ws/", "/favicon.ico")
_WEBSOCKET = "/_nicegui_ws/"
_MAX_BYTES = 1_000_000  # of one request; NiceGUI's scripts send no more
_RETRY_AFTER_S = 10.0


@dataclass(frozen=True)
class Visitors:
    """How the users of pages are identified and limited.

    ``charge`` and ``name`` raise :class:`TooMany` when a token (or none) comes too often from an address.
    ``name`` returns the user of a token, or None. ``is_drawn`` returns whether a page of this id is waiting for
    its browser.
    """

    charge: Callable[[str | None, str], object]
    name: Callable[[str | None, str], Awaitable[str | None]]
    is_drawn: Callable[[str], bool]
    network: Callable[[str], str] = str


@dataclass(frozen=True)
class SocketLimits:
    """How many websockets may be open."""

    per_user: int = 100
    per_anonymous_address: int = 20
    anonymous: int = 100


@dataclass
class PageRateLimit:
    """Passes requests and websockets within the limits on to the pages."""

    pages: ASGIApp
    visitors: Visitors
    limits: SocketLimits = field(default_factory=SocketLimits)
    _open: Counter[str] = field(default_factory=Counter)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "websocket":
            await self._connect(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(Request(scope), receive, send)
        else:
            await self.pages(scope, receive, send)

    async def _answer(self, request: Request, receive: Receive, send: Send) -> None:
        path = request.scope["path"]
        connects = path.startswith(_WEBSOCKET) and "sid" not in request.query_params
        try:
            if connects or not path.startswith(ASSETS):
                self.visitors.charge(request.cookies.get(SESSION_COOKIE), _address(request))
            declared = request.headers.get("content-length", "0")
            if not declared.isdecimal() or int(declared) > _MAX_BYTES:
                raise TooLarge(_too_large())
        except ServiceError as error:
            await _refusal(error)(request.scope, receive, send)
            return
        await self.pages(request.scope, _bounded(receive), send)

    async def _connect(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Accept the websocket of a user with a session, or of a page drawn without one (sign-in)."""
        websocket = WebSocket(scope, receive, send)
        try:
            counters = await self._counters(websocket)
        except ServiceError as error:
            await websocket.receive()
            await websocket.send_denial_response(_refusal(error))
            return
        self._open.update(counters)
        try:
            await self.pages(scope, receive, send)
        finally:
            self._open.subtract(counters)
            for counter in counters:
                if self._open[counter] <= 0:
                    del self._open[counter]

    async def _counters(self, websocket: WebSocket) -> tuple[str, ...]:
        """Return the counters of a websocket, or raise why it is refused."""
        address = _address(websocket)
        name = await self.visitors.name(websocket.cookies.get(SESSION_COOKIE), address)
        if name is not None:
            limits = {f"user {name}": self.limits.per_user}
        elif self.visitors.is_drawn(websocket.query_params.get("client_id", "")):
            network = self.visitors.network(address)
            limits = {
                f"address {network}": self.limits.per_anonymous_address,
                "anonymous": self.limits.anonymous,
            }
        else:
            raise Forbidden(text("common.sign_in_first"))
        for counter, limit in limits.items():
            if self._open[counter] >= limit:
                raise TooMany(text("common.too_many_pages", count=limit), wait=_RETRY_AFTER_S)
        return tuple(limits)


def _too_large() -> str:
    return text("common.request_too_large", bytes=f"{_MAX_BYTES:,}")


def _address(connection: HTTPConnection) -> str:
    return connection.client.host if connection.client else "?"


def _refusal(error: ServiceError) -> PlainTextResponse:
    headers = {"Retry-After": str(error.retry_after)} if isinstance(error, Unavailable) else {}
    return PlainTextResponse(str(error), error.status, headers)


def _bounded(receive: Receive) -> Receive:
    """Return ``receive`` with a limit on the size of the body."""
    size = 0

    async def receive_bounded() -> Message:
        nonlocal size
        message = await receive()
        if message["type"] == "http.request":
            size += len(message.get("body", b""))
            if size > _MAX_BYTES:
                raise HTTPException(TooLarge.status, _too_large())
        return message

    return receive_bounded
