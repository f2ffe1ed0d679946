"""How the service was over the last minutes: asked for once, whether no page is open or fifty are."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from nicegui import ui

from alarmcast import AlarmcastError, AsyncClient
from wire.rest.health import Status

log = logging.getLogger(__name__)
INTERVAL = 5.0  # seconds
KEPT_MINUTES = 15
Listener = Callable[["StatusPoller"], None]


@dataclass(frozen=True)
class StatusSample:
    """One look at the service, by the clock of this process."""

    at: float
    status: Status


@dataclass
class StatusPoller:
    """Looks every few seconds, so that whoever opens a page sees the minutes before it too."""

    client: AsyncClient
    monotonic: Callable[[], float] = time.monotonic
    beats: deque[StatusSample] = field(default_factory=lambda: deque(maxlen=int(KEPT_MINUTES * 60 / INTERVAL)))
    trouble: str | None = None  # why the newest beat is not new
    _listeners: dict[object, Listener] = field(default_factory=dict)

    async def newest(self) -> Status | None:
        """Return how the service was a moment ago, or None if it does not say."""
        if not self.beats:
            await self.look()
        return self.beats[-1].status if self.beats else None

    async def run(self) -> None:
        """Look and tell until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(INTERVAL)

    async def look(self) -> None:
        """Ask once and tell every open page."""
        try:
            self.beats.append(StatusSample(self.monotonic(), await self.client.health.status()))
            self.trouble = None
        except AlarmcastError as error:
            log.warning("the pages do not know how the service is: %s", error)
            self.trouble = str(error)
        for key, listener in list(self._listeners.items()):
            try:
                listener(self)
            except Exception:
                # A page that was closed at this very moment must not silence the others.
                log.debug("a page could not be told", exc_info=True)
                self._listeners.pop(key, None)

    def subscribe(self, listener: Listener) -> None:
        """Tell ``listener`` of every beat for as long as the page that is being drawn is open."""
        client, key = ui.context.client, object()

        def within_the_page(pulse: StatusPoller) -> None:
            with client:
                listener(pulse)

        client.on_connect(lambda: self._listeners.update({key: within_the_page}))
        client.on_disconnect(lambda: self._listeners.pop(key, None))
        client.on_delete(lambda: self._listeners.pop(key, None))  # which may be while it is connected
