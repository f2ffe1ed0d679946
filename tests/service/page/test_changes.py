"""Changes on the bus refresh parts of pages: debounced, bounded, and also while other processes are lost."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from threading import Thread

import pytest

from alarmcast import AlarmcastError, Unreachable
from service.messaging.bus import ChangeBus, ChangesMissed, EventsStored, JobsChanged
from service.page import changes as module
from service.page.changes import PageChanges, RefreshLoop, Topic

INTERVAL = 600.0  # seconds: no refresh by time alone


@dataclass
class Refreshed:
    """A part of a page that counts its refreshes."""

    count: int = 0
    _counted: asyncio.Event = field(default_factory=asyncio.Event)

    async def refresh(self) -> None:
        self.count += 1
        self._counted.set()

    async def reach(self, count: int) -> None:
        """Wait until there were so many refreshes."""
        async with asyncio.timeout(20):
            while self.count < count:
                self._counted.clear()
                await self._counted.wait()


@dataclass
class Page:
    bus: ChangeBus
    changes: PageChanges
    loop: RefreshLoop


def with_page(story: Callable[[Page], Awaitable[None]], *, is_connected: bool = True) -> None:
    async def run() -> None:
        bus = ChangeBus()
        changes = PageChanges(bus, is_connected=lambda: is_connected)
        changes.start()
        page = Page(bus, changes, RefreshLoop(changes))
        try:
            await story(page)
        finally:
            page.loop.stop()
            changes.stop()

    asyncio.run(run())


def test_a_change_published_in_a_thread_refreshes_the_parts_of_its_topic_only() -> None:
    async def story(page: Page) -> None:
        jobs, events = Refreshed(), Refreshed()
        page.loop.add(jobs.refresh, Topic.JOBS, pause_s=0, interval_s=INTERVAL)
        page.loop.add(events.refresh, Topic.EVENTS, pause_s=0, interval_s=INTERVAL)
        page.loop.start()
        await jobs.reach(1)
        await events.reach(1)
        publisher = Thread(target=page.bus.publish, args=(JobsChanged(),))
        publisher.start()
        await jobs.reach(2)
        publisher.join()
        assert events.count == 1

    with_page(story)


def test_many_changes_are_one_refresh_and_the_pause_is_kept() -> None:
    async def story(page: Page) -> None:
        fast, slow = Refreshed(), Refreshed()
        page.loop.add(fast.refresh, Topic.EVENTS, pause_s=0, interval_s=INTERVAL)
        page.loop.add(slow.refresh, Topic.EVENTS, pause_s=INTERVAL, interval_s=INTERVAL)
        page.loop.start()
        await slow.reach(1)
        for _ in range(1000):
            page.bus.publish(EventsStored())
        await fast.reach(2)
        page.bus.publish(EventsStored())
        await fast.reach(3)
        assert (fast.count, slow.count) == (3, 1)

    with_page(story)


def test_missed_changes_refresh_every_part() -> None:
    async def story(page: Page) -> None:
        parts = [Refreshed() for _ in Topic]
        for part, topic in zip(parts, Topic, strict=True):
            page.loop.add(part.refresh, topic, pause_s=0, interval_s=INTERVAL)
        page.loop.start()
        await parts[-1].reach(1)
        page.bus.publish(ChangesMissed())
        for part in parts:
            await part.reach(2)

    with_page(story)


def test_without_a_connection_to_other_processes_pages_are_refreshed_by_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_DISCONNECTED_INTERVAL_S", 0.01)

    async def story(page: Page) -> None:
        part = Refreshed()
        page.loop.add(part.refresh, Topic.JOBS, pause_s=0, interval_s=INTERVAL)
        page.loop.start()
        await part.reach(3)

    with_page(story, is_connected=False)


def test_a_part_is_refreshed_after_its_interval() -> None:
    async def story(page: Page) -> None:
        part = Refreshed()
        page.loop.add(part.refresh, pause_s=0, interval_s=0.01)
        page.loop.start()
        await part.reach(3)

    with_page(story)


def test_an_error_is_shown_until_the_part_is_refreshed_and_other_parts_go_on() -> None:
    async def story(page: Page) -> None:
        shown: list[AlarmcastError | None] = []
        answers = iter([Unreachable("No answer."), ValueError("a defect"), None])
        other = Refreshed()

        async def fail_first() -> None:
            if error := next(answers):
                raise error

        page.loop.on_error = shown.append
        page.loop.add(fail_first, Topic.JOBS, pause_s=0, interval_s=INTERVAL)
        page.loop.add(other.refresh, Topic.JOBS, pause_s=0, interval_s=INTERVAL)
        page.loop.start()
        for count in (1, 2, 3):
            await other.reach(count)
            page.bus.publish(JobsChanged())
        await other.reach(3)
        assert [str(error) if error else None for error in shown[:6:2]] == ["No answer.", "No answer.", None]

    with_page(story)


def test_a_page_that_reconnects_is_refreshed_at_once() -> None:
    async def story(page: Page) -> None:
        part = Refreshed()
        page.loop.add(part.refresh, Topic.JOBS, pause_s=0, interval_s=INTERVAL)
        page.loop.start()
        await part.reach(1)
        page.loop.stop()
        page.loop.start()
        await part.reach(2)

    with_page(story)
