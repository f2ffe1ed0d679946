"""Data that open pages of users with the same role and sites share: the fleet, and the recent status."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from nicegui import ui

from alarmcast import AlarmcastError, AsyncClient
from service.page.changes import PageChanges, RefreshLoop, Topic
from wire.rest.health import Status
from wire.zones import common_zone

log = logging.getLogger(__name__)
_FLEET_INTERVAL_S = 5.0  # presence, ages and the plant clock change without an event
SAMPLE_INTERVAL_S = 5.0
HISTORY_MINUTES = 15
T = TypeVar("T")


class Feed(Generic[T]):
    """Passes values on to the pages that are open."""

    def __init__(self, client: AsyncClient, changes: PageChanges) -> None:
        self._client, self.loop = client, RefreshLoop(changes)
        self._subscribers: dict[object, Callable[[T], None]] = {}

    def subscribe(self, on_change: Callable[[T], None]) -> None:
        """Call ``on_change`` with every value while the page that is being drawn is open."""
        page, key = ui.context.client, object()

        def in_page(value: T) -> None:
            with page:
                on_change(value)

        page.on_connect(lambda: self._open(key, in_page))
        page.on_disconnect(
            lambda: None if page.has_socket_connection else self._close(key)
        )  # may have reconnected
        page.on_delete(lambda: self._close(key))  # a connected page can be deleted too

    def _open(self, key: object, subscriber: Callable[[T], None]) -> None:
        self._subscribers[key] = subscriber
        self.loop.start()

    def _close(self, key: object) -> None:
        self._subscribers.pop(key, None)

    def _notify(self, value: T) -> None:
        for key, subscriber in list(self._subscribers.items()):
            try:
                subscriber(value)
            except Exception:
                # A page that is closed at this moment must not stop the others.
                log.debug("cannot update a page", exc_info=True)
                self._close(key)


class FleetFeed(Feed[dict[str, Any]]):
    """Fetches the fleet after changes while a page is open; subscribers get what changed, as from the API."""

    def __init__(self, client: AsyncClient, changes: PageChanges) -> None:
        super().__init__(client, changes)
        self._cards: dict[str, dict[str, Any]] = {}
        self._newest: dict[str, Any] | None = None
        self._zone: str | None = None  # computed on first use
        topics = (Topic.EVENTS, Topic.FORECASTS, Topic.JOBS, Topic.MODEL, Topic.RESOURCES, Topic.SUPPRESSION)
        self._fetching = asyncio.Lock()
        self._part = self.loop.add(self._fetch, *topics, interval_s=_FLEET_INTERVAL_S)

    async def snapshot(self) -> dict[str, Any]:
        """Return the overview with all its cards."""
        if self._newest is None or self._part.due_at < self.loop.monotonic():
            await self._fetch()
        return {**(self._newest or {}), "complete": True, "cards": list(self._cards.values()), "gone": []}

    async def prepare(self) -> None:
        """Fetch once, so that the time zone is known; it is UTC if that fails."""
        if self._newest is None:
            with suppress(AlarmcastError):
                await self._fetch()

    @property
    def zone(self) -> str:
        """The time zone of most machines."""
        if self._zone is None:
            self._zone = common_zone(card["time_zone"] for card in self._cards.values())
        return self._zone

    def _close(self, key: object) -> None:
        super()._close(key)
        if not self._subscribers:
            self.loop.stop()

    async def _fetch(self) -> None:
        """Fetch what changed and notify all subscribers; concurrent calls run in order."""
        async with self._fetching:
            since = self._newest["revision"] if self._newest else None
            overview = (await self._client.fleet.overview(since=since)).model_dump(mode="json")
            if overview["complete"]:
                self._cards.clear()
            self._cards.update({f"{card['site']}/{card['machine']}": card for card in overview["cards"]})
            for key in overview["gone"]:
                self._cards.pop(key, None)
            self._newest = overview
            if overview["cards"] or overview["gone"]:
                self._zone = None
            self._notify(overview)


@dataclass(frozen=True)
class StatusSample:
    """A status and when it was read, by the monotonic clock."""

    at: float
    status: Status


class StatusHistory(Feed["StatusHistory"]):
    """Samples the status all the time, so that a page shows the minutes before it was opened."""

    def __init__(self, client: AsyncClient, changes: PageChanges) -> None:
        super().__init__(client, changes)
        self.samples = deque[StatusSample](maxlen=int(HISTORY_MINUTES * 60 / SAMPLE_INTERVAL_S))
        self.error: str | None = None  # of the last sample
        self.loop.add(self.sample, interval_s=SAMPLE_INTERVAL_S)

    async def newest(self) -> Status | None:
        """Return the last status, or None without one."""
        if not self.samples:
            await self.sample()
        return self.samples[-1].status if self.samples else None

    async def sample(self) -> None:
        """Read the status and notify every open page."""
        try:
            self.samples.append(StatusSample(time.monotonic(), await self._client.health.status()))
            self.error = None
        except AlarmcastError as error:
            log.warning("cannot read the status for the pages: %s", error)
            self.error = str(error)
        self._notify(self)
