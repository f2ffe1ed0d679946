"""Connections of pages: who may open a websocket, how many, and how much a request may bring."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from starlette.types import Message, Receive, Scope, Send

from service.errors import TooMany
from service.page.page_rate_limit import PageRateLimit, SocketLimits, Visitors
from wire.rest.auth import SESSION_COOKIE

DRAWN = "7d1c2c0e-6b0e-4c5e-9a4f-2f6f3c1b8a10"
LIMITS = SocketLimits(per_user=2, per_anonymous_address=1, anonymous=2)


async def pages(scope: Scope, receive: Receive, send: Send) -> None:
    """Accept a websocket and keep it until it goes; read a request to its end."""
    message = await receive()
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        await receive()
        return
    while message.get("more_body"):
        message = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


class Visit:
    """One request or websocket, as the server brings it; ``status`` is 101 once a websocket is accepted."""

    def __init__(self, paced: PageRateLimit, scope: Scope, bodies: tuple[bytes, ...] = ()) -> None:
        self._words: asyncio.Queue[Message] = asyncio.Queue()
        self.status: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if scope["type"] == "websocket":
            self._words.put_nowait({"type": "websocket.connect"})
        for place, body in enumerate(bodies):
            more = place < len(bodies) - 1
            self._words.put_nowait({"type": "http.request", "body": body, "more_body": more})
        self._task = asyncio.create_task(paced(scope, self._words.get, self._send))

    async def _send(self, message: Message) -> None:
        if message["type"] == "websocket.accept":
            self.status.set_result(101)
        elif message["type"].endswith("response.start"):
            self.status.set_result(message["status"])

    async def leave(self) -> None:
        self._words.put_nowait({"type": "websocket.disconnect", "code": 1005})
        await self._task

    async def failed(self) -> str:
        try:
            await self._task
        except Exception as error:  # noqa: BLE001 - whatever it was
            return str(error)
        return ""


def scope_of(kind: str, *, token: str | None = None, page: str = "", address: str = "203.0.113.7") -> Scope:
    cookies = [(b"cookie", f"{SESSION_COOKIE}={token}".encode())] if token else []
    return {
        "type": kind,
        "method": "POST",
        "path": "/_nicegui_ws/socket.io/",
        "query_string": f"sid=1&client_id={page}".encode(),
        "headers": cookies,
        "client": (address, 1),
        "extensions": {"websocket.http.response": {}},
    }


async def whose(token: str | None, _address: str) -> str | None:
    return {"carlas": "carla", "carlas-other": "carla", "pauls": "paul"}.get(token or "")


def paced(name: Callable[[str | None, str], Awaitable[str | None]] = whose) -> PageRateLimit:
    visitors = Visitors(lambda _token, _address: None, name, lambda page: page == DRAWN, lambda one: one[:7])
    return PageRateLimit(pages, visitors, LIMITS)


def test_a_stranger_opens_no_websocket_except_for_a_page_that_was_drawn_for_them() -> None:
    async def visit() -> None:
        door = paced()
        for token, page in ((None, ""), (None, "guessed"), ("forged", "guessed")):
            assert await Visit(door, scope_of("websocket", token=token, page=page)).status == 403
        assert await Visit(door, scope_of("websocket", page=DRAWN)).status == 101
        assert await Visit(door, scope_of("websocket", token="carlas")).status == 101  # noqa: S106

    asyncio.run(visit())


def test_websockets_are_limited_by_person_by_a_strangers_network_and_for_all_strangers() -> None:
    async def visit() -> None:
        door = paced()
        of_carla = [
            Visit(door, scope_of("websocket", token=token)) for token in ("carlas", "carlas-other", "carlas")
        ]
        assert [await one.status for one in of_carla] == [101, 101, 429]
        assert await Visit(door, scope_of("websocket", token="pauls")).status == 101  # noqa: S106
        addresses = ("2001:d8::1", "2001:d8::2", "2001:d9::1", "203.0.113.7")
        strangers = [Visit(door, scope_of("websocket", page=DRAWN, address=one)) for one in addresses]
        assert [await one.status for one in strangers] == [101, 429, 101, 429]
        await of_carla[0].leave()
        await strangers[0].leave()
        assert await Visit(door, scope_of("websocket", token="carlas")).status == 101  # noqa: S106
        assert await Visit(door, scope_of("websocket", page=DRAWN, address="203.0.113.7")).status == 101

    asyncio.run(visit())


def test_who_comes_too_often_is_refused_before_anything_else() -> None:
    async def too_often(_token: str | None, _address: str) -> str | None:
        raise TooMany("Wait.", wait=3)

    async def visit() -> None:
        assert await Visit(paced(too_often), scope_of("websocket", page=DRAWN)).status == 429

    asyncio.run(visit())


@pytest.mark.parametrize("declared", [True, False])
def test_a_request_to_a_page_brings_no_more_than_a_megabyte_said_or_not(*, declared: bool) -> None:
    async def visit() -> None:
        door, scope = paced(), scope_of("http")
        small = Visit(door, scope, (b"a" * 1000,) * 100)
        assert await small.status == 200
        if declared:
            scope["headers"] = [(b"content-length", b"1000001")]
            assert await Visit(door, scope, (b"",)).status == 413
        else:
            large = Visit(door, scope, (b"a" * 100_000,) * 100)
            assert "1,000,000 bytes" in await large.failed()

    asyncio.run(visit())
