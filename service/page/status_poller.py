"""Polls the status of the service for all pages and keeps the last minutes of it."""

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
INTERVAL_S = 5.0
HISTORY_MINUTES = 15
Subscriber = Callable[["StatusPoller"], None]


@dataclass(frozen=True)
class StatusSample:
    """A status and when it was read, by the monotonic clock."""

    at: float
    status: Status


@dataclass
class StatusPoller:
    """Polls every few seconds, so that a page shows the minutes before it was opened."""

    client: AsyncClient
    monotonic: Callable[[], float] = time.monotonic
    samples: deque[StatusSample] = field(
        default_factory=lambda: deque(maxlen=int(HISTORY_MINUTES * 60 / INTERVAL_S))
    )
    error: str | None = None  # of the last poll
    _subscribers: dict[object, Subscriber] = field(default_factory=dict)

    async def newest(self) -> Status | None:
        """Return the last status, or None without one."""
        if not self.samples:
            await self.poll()
        return self.samples[-1].status if self.samples else None

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            await self.poll()
            await asyncio.sleep(INTERVAL_S)

    async def poll(self) -> None:
        """Poll once and notify every open page."""
        try:
            self.samples.append(StatusSample(self.monotonic(), await self.client.health.status()))
            self.error = None
        except AlarmcastError as error:
            log.warning("cannot read the status for the pages: %s", error)
            self.error = str(error)
        for key, subscriber in list(self._subscribers.items()):
            try:
                subscriber(self)
            except Exception:
                # A page that is closed at this moment must not stop the others.
                log.debug("cannot update a page", exc_info=True)
                self._subscribers.pop(key, None)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call ``subscriber`` after every poll while the page that is being drawn is open."""
        client, key = ui.context.client, object()

        def in_page(poller: StatusPoller) -> None:
            with client:
                subscriber(poller)

        client.on_connect(lambda: self._subscribers.update({key: in_page}))
        client.on_disconnect(lambda: self._subscribers.pop(key, None))
        client.on_delete(lambda: self._subscribers.pop(key, None))  # a connected page can be deleted too
