"""One ear at the API for all open pages: what changed is asked for once and told to everybody."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from alarmcast import AlarmcastError, AsyncClient
from wire.zones import common_zone

log = logging.getLogger(__name__)
_PULSE = 1.0  # seconds between two questions
Watcher = Callable[[dict[str, Any]], None]


@dataclass
class FleetPoller:
    """Asks for the fleet once a second while a page is open; watchers get what changed, as the API says it."""

    client: AsyncClient
    _watchers: dict[object, Watcher] = field(default_factory=dict)
    _cards: dict[str, dict[str, Any]] = field(default_factory=dict)
    _newest: dict[str, Any] | None = None
    _zone: str | None = None  # counted when it is asked for
    _opened: asyncio.Event = field(default_factory=asyncio.Event)
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def snapshot(self) -> dict[str, Any]:
        """Return the overview with all its cards."""
        if self._newest is None:
            await self._ask()
        return {**(self._newest or {}), "complete": True, "cards": list(self._cards.values()), "gone": []}

    async def prepare(self) -> None:
        """Ask once, so that the time zone is known; without an answer it is UTC."""
        if self._newest is None:
            with suppress(AlarmcastError):
                await self._ask()

    @property
    def zone(self) -> str:
        """The time zone of most machines."""
        if self._zone is None:
            self._zone = common_zone(card["time_zone"] for card in self._cards.values())
        return self._zone

    def subscribe(self, key: object, watcher: Watcher) -> None:
        """Tell ``watcher`` of every change from now on, until ``unwatch(key)``."""
        self._watchers[key] = watcher
        self._opened.set()

    def unsubscribe(self, key: object) -> None:
        """Tell no more."""
        self._watchers.pop(key, None)

    async def run(self) -> None:
        """Ask and tell until cancelled; while no page is open nothing is asked."""
        while True:
            if not self._watchers:
                self._opened.clear()
                await self._opened.wait()
            try:
                await self._ask()
            except AlarmcastError as error:
                log.warning("the pages cannot be kept up to date: %s", error)
            await asyncio.sleep(_PULSE)

    async def _ask(self) -> None:
        """Ask what changed and tell everybody, in this order, whoever asks."""
        async with self._asking:
            since = self._newest["revision"] if self._newest else None
            overview = (await self.client.fleet.overview(since=since)).model_dump(mode="json")
            if overview["complete"]:
                self._cards.clear()
            self._cards.update({f"{card['site']}/{card['machine']}": card for card in overview["cards"]})
            for key in overview["gone"]:
                self._cards.pop(key, None)
            self._newest = overview
            if overview["cards"] or overview["gone"]:
                self._zone = None
            self._tell(overview)

    def _tell(self, changed: dict[str, Any]) -> None:
        for key, watcher in list(self._watchers.items()):
            try:
                watcher(changed)
            except Exception:
                # A page that was closed at this very moment must not silence the others.
                log.debug("a page could not be told", exc_info=True)
                self.unsubscribe(key)
