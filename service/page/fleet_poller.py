"""Polls the fleet once for all open pages and passes changes on."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from alarmcast import AlarmcastError, AsyncClient
from wire.zones import common_zone

log = logging.getLogger(__name__)
_POLL_INTERVAL_S = 1.0
Subscriber = Callable[[dict[str, Any]], None]


@dataclass
class FleetPoller:
    """Polls the fleet once a second while a page is open; subscribers get what changed, as the API returns it."""

    client: AsyncClient
    _subscribers: dict[object, Subscriber] = field(default_factory=dict)
    _cards: dict[str, dict[str, Any]] = field(default_factory=dict)
    _newest: dict[str, Any] | None = None
    _zone: str | None = None  # computed on first use
    _opened: asyncio.Event = field(default_factory=asyncio.Event)
    _polling: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def snapshot(self) -> dict[str, Any]:
        """Return the overview with all its cards."""
        if self._newest is None:
            await self._poll()
        return {**(self._newest or {}), "complete": True, "cards": list(self._cards.values()), "gone": []}

    async def prepare(self) -> None:
        """Poll once, so that the time zone is known; it is UTC if the poll fails."""
        if self._newest is None:
            with suppress(AlarmcastError):
                await self._poll()

    @property
    def zone(self) -> str:
        """The time zone of most machines."""
        if self._zone is None:
            self._zone = common_zone(card["time_zone"] for card in self._cards.values())
        return self._zone

    def subscribe(self, key: object, subscriber: Subscriber) -> None:
        """Pass every change to ``subscriber`` until ``unsubscribe(key)``."""
        self._subscribers[key] = subscriber
        self._opened.set()

    def unsubscribe(self, key: object) -> None:
        """End a subscription."""
        self._subscribers.pop(key, None)

    async def run(self) -> None:
        """Poll until cancelled, while a page is open."""
        while True:
            if not self._subscribers:
                self._opened.clear()
                await self._opened.wait()
            try:
                await self._poll()
            except AlarmcastError as error:
                log.warning("cannot update the pages: %s", error)
            await asyncio.sleep(_POLL_INTERVAL_S)

    async def _poll(self) -> None:
        """Fetch what changed and notify all subscribers; concurrent polls run in order."""
        async with self._polling:
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
            self._notify(overview)

    def _notify(self, changed: dict[str, Any]) -> None:
        for key, subscriber in list(self._subscribers.items()):
            try:
                subscriber(changed)
            except Exception:
                # A page that is closed at this moment must not stop the others.
                log.debug("cannot update a page", exc_info=True)
                self.unsubscribe(key)
