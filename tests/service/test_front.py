"""The door between programs and pages: who leaves while a page is drawn is no error, anything else is."""

import asyncio

import pytest
from starlette.types import Message, Receive, Scope, Send

from service.page.front import Front


def page() -> Scope:
    return {"type": "http", "path": "/alarms"}


async def given_up(_scope: Scope, receive: Receive, _send: Send) -> None:
    await receive()
    raise RuntimeError("No response returned.")


async def broken(_scope: Scope, receive: Receive, _send: Send) -> None:
    await receive()
    raise RuntimeError("Something else.")


async def send(_message: Message) -> None:
    pass


async def left() -> Message:
    return {"type": "http.disconnect"}


async def asked() -> Message:
    return {"type": "http.request", "body": b""}


def test_a_reader_who_left_is_no_error() -> None:
    asyncio.run(Front(broken, given_up)(page(), left, send))


def test_a_page_that_comes_to_nothing_while_its_reader_waits_is_one() -> None:
    with pytest.raises(RuntimeError, match="No response"):
        asyncio.run(Front(broken, given_up)(page(), asked, send))
    with pytest.raises(RuntimeError, match="Something else"):
        asyncio.run(Front(given_up, broken)(page(), left, send))
