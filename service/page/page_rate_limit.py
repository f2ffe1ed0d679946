"""How often pages are drawn, and how many connections they have: strangers' browsers may never come back."""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from fastapi import HTTPException, Request, WebSocket
from fastapi.responses import PlainTextResponse
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import Forbidden, ServiceError, TooLarge, TooMany, Unavailable
from wire.rest.auth import SESSION_COOKIE

# What a page is made of: files, many for each page, and the connection by which it lives.
ASSETS = ("/static/", "/_nicegui/", "/_nicegui_ws/", "/favicon.ico")
_CONNECTION = "/_nicegui_ws/"
_MOST_BYTES = 1_000_000  # of one request; NiceGUI's scripts send no more
_WAIT = 10.0  # seconds after which somebody may have closed a page


@dataclass(frozen=True)
class Visitors:
    """Who visits pages, asked by what their request brings.

    ``charge`` and ``name`` raise :class:`TooMany` where a token (or none) comes too often from an address.
    ``name`` returns the name of whose token it is, or None for a stranger. ``is_drawn`` says whether a page of
    that id was drawn lately and is still kept.
    """

    charge: Callable[[str | None, str], object]
    name: Callable[[str | None, str], Awaitable[str | None]]
    is_drawn: Callable[[str], bool]
    network: Callable[[str], str] = str


@dataclass(frozen=True)
class SocketLimits:
    """How many websockets may be open."""

    of_a_person: int = 100
    of_a_strangers_address: int = 20
    of_strangers: int = 100


@dataclass
class PageRateLimit:
    """Pages, if visitors come no more often and hold no more connections than is allowed."""

    pages: ASGIApp
    visitors: Visitors
    limits: SocketLimits = field(default_factory=SocketLimits)
    _open: Counter[str] = field(default_factory=Counter)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer why not."""
        if scope["type"] == "websocket":
            await self._connect(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(Request(scope), receive, send)
        else:
            await self.pages(scope, receive, send)

    async def _answer(self, request: Request, receive: Receive, send: Send) -> None:
        path = request.scope["path"]
        begins = path.startswith(_CONNECTION) and "sid" not in request.query_params
        try:
            if begins or not path.startswith(ASSETS):
                self.visitors.charge(request.cookies.get(SESSION_COOKIE), _address(request))
            declared = request.headers.get("content-length", "0")
            if not declared.isdecimal() or int(declared) > _MOST_BYTES:
                raise TooLarge(_TOO_LARGE)
        except ServiceError as error:
            await _refusal(error)(request.scope, receive, send)
            return
        await self.pages(request.scope, _bounded(receive), send)

    async def _connect(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a page connect if its visitor has a session, or if it was drawn for a stranger: the sign-in form."""
        websocket = WebSocket(scope, receive, send)
        try:
            places = await self._places(websocket)
        except ServiceError as error:
            await websocket.receive()
            await websocket.send_denial_response(_refusal(error))
            return
        self._open.update(places)
        try:
            await self.pages(scope, receive, send)
        finally:
            self._open.subtract(places)
            for place in places:
                if self._open[place] <= 0:
                    del self._open[place]

    async def _places(self, websocket: WebSocket) -> tuple[str, ...]:
        """Return what a connection is counted under, or raise why it is refused."""
        address = _address(websocket)
        name = await self.visitors.name(websocket.cookies.get(SESSION_COOKIE), address)
        if name is not None:
            limits = {f"person {name}": self.limits.of_a_person}
        elif self.visitors.is_drawn(websocket.query_params.get("client_id", "")):
            network = self.visitors.network(address)
            limits = {
                f"address {network}": self.limits.of_a_strangers_address,
                "strangers": self.limits.of_strangers,
            }
        else:
            raise Forbidden("Sign in first: this connection is for pages that are open.")
        for place, most in limits.items():
            if self._open[place] >= most:
                raise TooMany(f"{most} pages are connected already. Close some of them.", wait=_WAIT)
        return tuple(limits)


_TOO_LARGE = f"A page may send at most {_MOST_BYTES:,} bytes at once."


def _address(connection: HTTPConnection) -> str:
    return connection.client.host if connection.client else "?"


def _refusal(error: ServiceError) -> PlainTextResponse:
    headers = {"Retry-After": str(error.retry_after)} if isinstance(error, Unavailable) else {}
    return PlainTextResponse(str(error), error.status, headers)


def _bounded(receive: Receive) -> Receive:
    """Return how a body is received that may be no larger than the limit."""
    taken = 0

    async def received() -> Message:
        nonlocal taken
        message = await receive()
        if message["type"] == "http.request":
            taken += len(message.get("body", b""))
            if taken > _MOST_BYTES:
                raise HTTPException(TooLarge.status, _TOO_LARGE)
        return message

    return received
