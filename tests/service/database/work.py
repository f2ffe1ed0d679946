"""How much SQLite does for what it is asked."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, event


@dataclass
class Work:
    """How much SQLite has done, in thousands of steps of its virtual machine."""

    thousands: int = 0

    def count(self) -> int:
        self.thousands += 1
        return 0


@contextmanager
def counted_work() -> Iterator[Work]:
    """Yield the work that SQLite does in the transactions of the block."""
    work = Work()
    drivers: list[Any] = []

    @event.listens_for(Engine, "begin")
    def watch(connection: Any) -> None:
        drivers.append(connection.connection.driver_connection)
        drivers[-1].set_progress_handler(work.count, 1000)

    try:
        yield work
    finally:
        event.remove(Engine, "begin", watch)
        for driver in drivers:
            driver.set_progress_handler(None, 0)
