"""Limits the memory of drawn pages: how many wait for a browser, and when deleted ones are freed."""

import asyncio
import gc
from collections import Counter
from dataclasses import dataclass, field

from nicegui import Client

MAX_PER_OWNER, MAX_TOTAL = 30, 300  # pages; one takes about a third of a megabyte
COLLECT_AFTER = 100  # deleted pages


@dataclass
class Undelivered:
    """Pages that no browser has connected to yet, each with the user or address that requested it.

    NiceGUI keeps such a page for a minute. A browser that connects to a deleted page reloads it.
    """

    max_per_owner: int = MAX_PER_OWNER
    max_total: int = MAX_TOTAL
    _owners: dict[Client, str] = field(default_factory=dict)  # oldest first

    def add(self, page: Client, owner: str) -> None:
        """Add a page; above the limits the oldest page of the owner with most pages is deleted."""
        self._owners[page] = owner
        page.on_connect(lambda: self._owners.pop(page, None))
        page.on_delete(lambda: self._owners.pop(page, None))
        counts = Counter(self._owners.values())
        if counts[owner] > self.max_per_owner:
            self._delete_oldest_of(owner)
        elif len(self._owners) > self.max_total:
            self._delete_oldest_of(counts.most_common(1)[0][0])

    def _delete_oldest_of(self, owner: str) -> None:
        oldest = next(page for page, page_owner in self._owners.items() if page_owner == owner)
        self._owners.pop(oldest)
        if not oldest.is_deleted:
            oldest.delete()


@dataclass
class Collection:
    """Collects garbage after so many deleted pages.

    The elements of a page form cycles and live for a minute, so they reach the oldest generation, which Python
    would collect only after some thousand pages: hundreds of megabytes.
    """

    after: int = COLLECT_AFTER
    delay: float = 3.0  # seconds until the tasks of deleted pages have ended
    _deleted: int = 0

    def count(self) -> None:
        """Count a deleted page."""
        self._deleted += 1
        if self._deleted == self.after:
            asyncio.get_running_loop().call_later(self.delay, self._collect)

    def _collect(self) -> None:
        self._deleted = 0
        gc.collect()
