"""Short messages between processes that share a PostgreSQL database, over LISTEN and NOTIFY.

They only make things quicker: whoever misses one finds out by looking, as every process does on SQLite. So they
are sent without waiting, and a process that could not listen for a while is told so and looks at everything.
"""

import json
import logging
import secrets
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from threading import Event
from typing import Any, cast

import psycopg

from service.database.engine import Database
from service.errors import Unavailable
from service.messaging.change_event import ChangeEvent, ChangeKind
from service.messaging.pg_notify import CHANNEL, notify

log = logging.getLogger(__name__)

_LISTEN = 0.5  # seconds between two looks whether to stop
# Seconds of silence after which the connection must show that it still lives; what was sent to a host that is
# lost goes unanswered only for as long as the connection itself allows.
_PROVE = 10.0
_RETRY = 1.0


@dataclass
class PgNotify:
    """One process's voice and ear; ``name`` tells its own words from those of others."""

    database: Database
    name: str = field(default_factory=lambda: secrets.token_hex(6))
    error: str | None = None

    def send(self, signals: Iterable[ChangeEvent]) -> None:
        """Tell all other processes, in one transaction; :class:`Unavailable` if the database is away."""
        with self.database.write() as connection:
            for signal in signals:
                notify(connection, signal, sender=self.name)

    def listen(self, heard: Callable[[ChangeEvent], None], deaf: Callable[[], None], stopping: Event) -> None:
        """Hand over what others tell until told to stop; ``deaf`` is called after every time of not listening."""
        while not stopping.is_set():
            try:
                with closing(self._connect()) as connection:
                    self.error = None
                    deaf()
                    self._hear(connection, heard, stopping)
            except (psycopg.Error, Unavailable) as error:
                self.error = f"cannot listen to other processes: {error}"
                log.warning(self.error)
                stopping.wait(_RETRY)

    def _connect(self) -> psycopg.Connection[Any]:
        connection = self.database.raw_connection()
        connection.autocommit = True
        connection.execute(f"LISTEN {CHANNEL}")
        return connection

    def _hear(
        self, connection: psycopg.Connection[Any], heard: Callable[[ChangeEvent], None], stopping: Event
    ) -> None:
        proved = time.monotonic()
        while not stopping.is_set():
            for note in connection.notifies(timeout=_LISTEN):
                proved = time.monotonic()
                body = cast("dict[str, Any]", json.loads(note.payload))
                if body.pop("from") != self.name:
                    heard(ChangeEvent(ChangeKind(body.pop("kind")), body))
                if stopping.is_set():
                    return
            if time.monotonic() - proved > _PROVE:
                connection.execute("SELECT 1")
                proved = time.monotonic()
