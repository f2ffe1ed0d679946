"""Bounds the memory of drawn pages: how many wait for a browser, and when deleted ones are freed."""

import asyncio
import gc
from collections import Counter
from dataclasses import dataclass, field

from nicegui import Client

MOST_EACH, MOST_IN_ALL = 30, 300  # pages; one takes about a third of a megabyte
COLLECTED_AFTER = 100  # deleted pages


@dataclass
class Undelivered:
    """Pages that were drawn and that no browser has connected to yet, each with whoever asked for it.

    NiceGUI keeps such a page for a minute. A browser that comes for one that was deleted loads it again by itself.
    """

    most_each: int = MOST_EACH
    most_in_all: int = MOST_IN_ALL
    _owners: dict[Client, str] = field(default_factory=dict)  # oldest first

    def add(self, page: Client, owner: str) -> None:
        """Note a page that is being drawn; beyond the limits the oldest of whoever has most is deleted."""
        self._owners[page] = owner
        page.on_connect(lambda: self._owners.pop(page, None))
        page.on_delete(lambda: self._owners.pop(page, None))
        counts = Counter(self._owners.values())
        if counts[owner] > self.most_each:
            self._delete_oldest_of(owner)
        elif len(self._owners) > self.most_in_all:
            self._delete_oldest_of(counts.most_common(1)[0][0])

    def _delete_oldest_of(self, owner: str) -> None:
        oldest = next(page for page, of in self._owners.items() if of == owner)
        self._owners.pop(oldest)
        if not oldest.is_deleted:
            oldest.delete()


@dataclass
class Collection:
    """Collects garbage after so many deleted pages.

    The elements of a page refer to each other and survive a minute, so they are garbage of the oldest generation,
    which the collector visits only after some thousand pages: hundreds of megabytes.
    """

    after: int = COLLECTED_AFTER
    delay: float = 3.0  # seconds in which the tasks of deleted pages end; until then they hold them
    _deleted: int = 0

    def count(self) -> None:
        """Note that a page is being deleted."""
        self._deleted += 1
        if self._deleted == self.after:
            asyncio.get_running_loop().call_later(self.delay, self._collect)

    def _collect(self) -> None:
        self._deleted = 0
        gc.collect()
