"""The door between programs and pages: who leaves while a page is drawn is no error, anything else is."""

import asyncio

import pytest
from starlette.types import Message, Receive, Scope, Send

from service.page.dispatch import ApiOrPages


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
    asyncio.run(ApiOrPages(broken, given_up)(page(), left, send))


@pytest.mark.parametrize(
    ("path", "is_page"),
    [("/v1/fleet", False), ("/healthz", False), ("/health.json", False), ("/status", False), ("/api/v1/x", False),
     ("/health", True), ("/learning", True), ("/", True), ("/machines/a/b", True)],
)  # fmt: skip
def test_programs_are_answered_by_the_api_and_browsers_by_pages(path: str, is_page: bool) -> None:  # noqa: FBT001
    answered = []

    async def api(_scope: Scope, _receive: Receive, _send: Send) -> None:
        answered.append("api")

    async def pages(_scope: Scope, _receive: Receive, _send: Send) -> None:
        answered.append("page")

    asyncio.run(ApiOrPages(api, pages)({"type": "http", "path": path}, asked, send))
    assert answered == ["page" if is_page else "api"]


def test_a_page_that_comes_to_nothing_while_its_reader_waits_is_one() -> None:
    with pytest.raises(RuntimeError, match="No response"):
        asyncio.run(ApiOrPages(broken, given_up)(page(), asked, send))
    with pytest.raises(RuntimeError, match="Something else"):
        asyncio.run(ApiOrPages(given_up, broken)(page(), left, send))
