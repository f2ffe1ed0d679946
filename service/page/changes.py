"""Refreshes open pages after changes on the change bus, and at an interval for what changes with time alone.

Changes arrive in any thread, possibly hundreds a second. They are collected and passed on in the event loop of the
pages; each part of a page has a minimum pause between two refreshes, so the work of a page is bounded.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from math import inf
from threading import Lock

from nicegui import Client

from alarmcast import AlarmcastError
from service.messaging.bus import (
    ChampionPromoted,
    ChangeBus,
    ChangesMissed,
    EventsStored,
    HistoryLoaded,
    JobsChanged,
    NotificationsChanged,
    PermissionsChanged,
    ResourceChanged,
    SuppressionChanged,
)

log = logging.getLogger(__name__)
_DEBOUNCE_S = 0.1
_DISCONNECTED_INTERVAL_S = 5.0


class Topic(Enum):
    """What has changed."""

    EVENTS = auto()
    FORECASTS = auto()
    JOBS = auto()
    MODEL = auto()
    NOTIFICATIONS = auto()
    PERMISSIONS = auto()
    RESOURCES = auto()  # users, keys, webhooks, machines: whatever is written over REST
    SUPPRESSION = auto()


_TOPICS: dict[type[object], Topic] = {
    ChampionPromoted: Topic.MODEL,
    EventsStored: Topic.EVENTS,
    HistoryLoaded: Topic.EVENTS,
    JobsChanged: Topic.JOBS,
    NotificationsChanged: Topic.NOTIFICATIONS,
    PermissionsChanged: Topic.PERMISSIONS,
    ResourceChanged: Topic.RESOURCES,
    SuppressionChanged: Topic.SUPPRESSION,
}
Watcher = Callable[[AbstractSet[Topic]], None]


@dataclass(eq=False)
class PageChanges:
    """Passes changes on to all open pages; while other processes cannot be reached, everything may have changed.

    ``other_topics`` adds events of features that the pages do not import.
    """

    bus: ChangeBus
    other_topics: Mapping[type[object], Topic] = field(default_factory=dict)
    is_connected: Callable[[], bool] = lambda: True  # to the other processes
    _watchers: set[Watcher] = field(default_factory=set)
    _waiting: set[Topic] = field(default_factory=set)
    _lock: Lock = field(default_factory=Lock)
    _unsubscribe: list[Callable[[], None]] = field(default_factory=list)
    _task: "asyncio.Task[None] | None" = None

    def start(self) -> None:
        """Subscribe to the bus, in the event loop of the pages; may be called again."""
        if self._task is not None:
            return
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._check_connection())
        kinds = {kind: frozenset({topic}) for kind, topic in {**_TOPICS, **self.other_topics}.items()}
        for kind, topics in (kinds | {ChangesMissed: frozenset(Topic)}).items():
            self._unsubscribe.append(self.bus.subscribe(kind, partial(self._collect, topics)))

    def stop(self) -> None:
        """Unsubscribe from the bus."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        if self._task is not None:
            self._task.cancel()

    def watch(self, watcher: Watcher) -> None:
        """Call ``watcher`` with what has changed until ``unwatch``."""
        self._watchers.add(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        """End a watch; may be called twice."""
        self._watchers.discard(watcher)

    def _collect(self, topics: AbstractSet[Topic], _event: object) -> None:
        with self._lock:
            is_first = not self._waiting
            self._waiting |= topics
        if is_first:
            with suppress(RuntimeError):  # the loop is closed: the service stops
                self._loop.call_soon_threadsafe(self._loop.call_later, _DEBOUNCE_S, self._pass_on)

    def _pass_on(self) -> None:
        with self._lock:
            topics, self._waiting = self._waiting, set()
        for watcher in tuple(self._watchers):
            watcher(topics)

    async def _check_connection(self) -> None:
        while True:
            await asyncio.sleep(_DISCONNECTED_INTERVAL_S)
            if not self.is_connected():
                self._collect(frozenset(Topic), None)


def _log_error(error: AlarmcastError | None) -> None:
    if error is not None:
        log.warning("cannot update the pages: %s", error)


@dataclass(eq=False)
class Part:
    """A part of a page; times are of the monotonic clock."""

    refresh: Callable[[], Awaitable[object]]
    topics: frozenset[Topic]
    pause_s: float
    interval_s: float
    due_at: float = -inf
    refreshed_at: float = -inf
    error: AlarmcastError | None = None  # of the last refresh


@dataclass(eq=False)
class RefreshLoop:
    """Refreshes parts one after another: after a change of their topics, and after their interval."""

    changes: PageChanges
    on_error: Callable[[AlarmcastError | None], None] = _log_error  # is called after every refresh
    monotonic: Callable[[], float] = time.monotonic
    _parts: list[Part] = field(default_factory=list)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _page: Client | None = None
    _task: "asyncio.Task[None] | None" = None
    _is_active: bool = False

    def add(
        self,
        refresh: Callable[[], Awaitable[object]],
        *topics: Topic,
        pause_s: float = 1.0,
        interval_s: float = 30.0,
        at_start: bool = True,
    ) -> Part:
        """Add a part: at least ``pause_s`` and at most ``interval_s`` seconds lie between two refreshes.

        Without ``at_start`` the part loads itself when its component in the browser is ready.
        """
        due_at = -inf if at_start else self.monotonic() + interval_s
        part = Part(refresh, frozenset(topics), pause_s, interval_s, due_at)
        self._parts.append(part)
        self._wake.set()
        return part

    def run_while_open(self, page: Client) -> None:
        """Refresh while a browser is connected to a page, and at once when one connects."""
        self._page = page
        page.on_connect(self.start)
        page.on_disconnect(lambda: None if page.has_socket_connection else self.stop())  # it may have reconnected
        page.on_delete(self.stop)  # a connected page can be deleted too

    def start(self) -> None:
        """Refresh parts until ``stop``."""
        self._is_active = True
        self.changes.watch(self._on_change)
        if self._task is not None:
            self.trigger(*self._parts)  # it was disconnected, or another page of a feed was opened
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        """End after the current refresh."""
        self._is_active = False
        self.changes.unwatch(self._on_change)
        self._wake.set()

    def trigger(self, *parts: Part) -> None:
        """Refresh parts as soon as their pause allows it."""
        for part in parts:
            part.due_at = min(part.due_at, part.refreshed_at + part.pause_s)
        self._wake.set()

    def _on_change(self, topics: AbstractSet[Topic]) -> None:
        if changed := [part for part in self._parts if part.topics & topics]:
            self.trigger(*changed)

    async def _run(self) -> None:
        with self._page or nullcontext():
            while self._is_active:
                self._wake.clear()
                for part in list(self._parts):
                    if self._is_active and part.due_at <= self.monotonic():
                        await self._refresh(part)
                next_at = min((part.due_at for part in self._parts), default=inf)
                with suppress(TimeoutError):
                    delay = None if next_at == inf else max(0.0, next_at - self.monotonic())
                    await asyncio.wait_for(self._wake.wait(), delay)

    async def _refresh(self, part: Part) -> None:
        part.refreshed_at = self.monotonic()
        part.due_at = part.refreshed_at + part.interval_s
        try:
            await part.refresh()
            part.error = None
        except AlarmcastError as error:
            part.error = error
        except Exception:
            # A page that is closed at this moment raises, and a defect in one part must not stop the others.
            log.warning("cannot refresh a part of a page", exc_info=True)
        self.on_error(next((one.error for one in self._parts if one.error), None))
