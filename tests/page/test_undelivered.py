"""Drawn pages that no browser comes for: how many are kept, and that deleted ones are freed."""

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest
from nicegui import Client, core, html, ui

from service.page.page_memory import Collection, Undelivered


@pytest.fixture
def loop() -> Iterator[asyncio.Runner]:
    """NiceGUI on a loop of the test's own, without a server."""
    with asyncio.Runner() as runner:
        before, core.loop = core.loop, runner.get_loop()
        yield runner
        for page in list(Client.instances.values()):
            page.delete()
        core.loop = before


def draw(undelivered: Undelivered, owner: str) -> Client:
    with Client(ui.page("")) as page:
        html.p("something to keep")
    undelivered.add(page, owner)
    return page


def kept(*pages: Client) -> list[bool]:
    return [not page.is_deleted for page in pages]


def test_whoever_draws_without_connecting_loses_their_oldest_pages_and_nobody_else_does(
    loop: asyncio.Runner,
) -> None:
    async def play() -> None:
        undelivered = Undelivered(max_per_owner=2)
        anna = draw(undelivered, "anna")
        pages = [draw(undelivered, "vera") for _ in range(5)]
        assert kept(*pages) == [False, False, False, True, True]
        assert kept(anna) == [True]

    loop.run(play())


def test_a_page_that_a_browser_has_connected_to_does_not_count(loop: asyncio.Runner) -> None:
    async def play() -> None:
        undelivered = Undelivered(max_per_owner=1)
        first = draw(undelivered, "vera")
        for handler in first.connect_handlers:
            first.safe_invoke(handler)  # as a handshake does
        second, third = draw(undelivered, "vera"), draw(undelivered, "vera")
        assert kept(first, second, third) == [True, False, True]

    loop.run(play())


def test_beyond_the_limit_for_all_whoever_has_most_loses_their_oldest(loop: asyncio.Runner) -> None:
    async def play() -> None:
        undelivered = Undelivered(max_per_owner=10, max_total=4)
        anna = draw(undelivered, "anna")
        vera = [draw(undelivered, "vera") for _ in range(3)]
        maria = draw(undelivered, "maria")
        assert kept(anna, maria, *vera) == [True, True, False, True, True]

    loop.run(play())


def test_deleted_pages_are_freed_though_the_collector_does_not_come_by_itself(loop: asyncio.Runner) -> None:
    async def play() -> None:
        collection = Collection(after=3, delay=0.01)
        undelivered = Undelivered(max_per_owner=1)
        seen = []
        for number in range(4):
            page = draw(undelivered, "vera")
            page.on_delete(collection.count)
            seen.append(weakref.ref(page))
            del page
            if number < 3:
                assert all(one() is not None for one in seen), "each refers to itself"
        async with asyncio.timeout(10):
            while any(one() is not None for one in seen[:3]):
                await asyncio.sleep(0.01)
                collection.count()  # what still ran in the meantime is freed with the next pages
        assert seen[3]() is not None

    gc.collect()
    gc.disable()
    try:
        loop.run(play())
    finally:
        gc.enable()
