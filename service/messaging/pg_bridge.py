"""The change bus between processes that share a PostgreSQL database, over LISTEN and NOTIFY.

Notifications only make caches fresh sooner: what is missed is found by polling, as on SQLite. So they are sent
without waiting, and after every time without a connection the receiver publishes ``ChangesMissed``.
"""

import json
import logging
import time
from contextlib import closing
from threading import Event
from typing import Any, cast

import psycopg

from service.database.engine import Database
from service.errors import Unavailable
from service.messaging.background import BackgroundThread
from service.messaging.bus import Change, ChangeBus, ChangesMissed
from service.messaging.change_codec import ChangeBatch, from_body
from service.messaging.cluster_store import CHANNEL, notify

log = logging.getLogger(__name__)

_BATCH_DELAY_S = 0.03
_POLL_INTERVAL_S = 0.5  # between two checks whether to stop
_PROBE_AFTER_S = 10.0  # of silence; a dead connection is noticed only when something is sent over it
_RETRY_S = 1.0


class ChangeSender(BackgroundThread):
    """Sends batches of local changes; a batch that cannot be sent is dropped."""

    def __init__(self, database: Database, name: str) -> None:
        super().__init__("change sender")
        self._database, self._process_name = database, name
        self._batch, self._wake = ChangeBatch(), Event()

    def add(self, change: Change) -> None:
        """Send a change with the next batch; never blocks."""
        self._batch.add(change)
        self._wake.set()

    def stop(self) -> None:
        """Send what waits, and end."""
        self._stopping.set()
        self._wake.set()
        super().stop()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait()
            self._stopping.wait(_BATCH_DELAY_S)
            self._wake.clear()
            try:
                self._send(self._batch.take())
                self.last_error = None
            except Exception as error:  # noqa: BLE001 - recorded, and the next batch is tried
                self._record_error(error)

    def _send(self, changes: list[Change]) -> None:
        if changes:
            with self._database.write() as connection:
                for change in changes:
                    notify(connection, change, sender=self._process_name)


class ChangeReceiver(BackgroundThread):
    """Delivers the changes of other processes, and ``ChangesMissed`` after every new connection."""

    def __init__(self, database: Database, name: str, bus: ChangeBus) -> None:
        super().__init__("change receiver")
        self._database, self._process_name, self._bus = database, name, bus

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                with closing(self._connect()) as connection:
                    self._deliver(ChangesMissed())
                    self._receive(connection)
            except (psycopg.Error, Unavailable) as error:
                self.last_error = f"cannot listen to other processes: {error}"
                log.warning(self.last_error)
                self._stopping.wait(_RETRY_S)
            except Exception as error:  # noqa: BLE001 - recorded; the next connection invalidates everything
                self._record_error(error)
                self._stopping.wait(_RETRY_S)

    def _connect(self) -> psycopg.Connection[Any]:
        connection = self._database.raw_connection()
        connection.autocommit = True
        connection.execute(f"LISTEN {CHANNEL}")
        return connection

    def _receive(self, connection: psycopg.Connection[Any]) -> None:
        active_at = time.monotonic()
        while not self._stopping.is_set():
            for note in connection.notifies(timeout=_POLL_INTERVAL_S):
                active_at = time.monotonic()
                body = cast("dict[str, Any]", json.loads(note.payload))
                if body.pop("from") != self._process_name:
                    self._deliver(from_body(body))
                if self._stopping.is_set():
                    return
            if time.monotonic() - active_at > _PROBE_AFTER_S:
                connection.execute("SELECT 1")
                active_at = time.monotonic()

    def _deliver(self, event: Change | ChangesMissed) -> None:
        self._bus.deliver(event)
        self.last_error = None


class PgBridge:
    """Both directions; ``name`` is unique to this process."""

    def __init__(self, bus: ChangeBus, database: Database, name: str) -> None:
        self._sender = ChangeSender(database, name)
        self._receiver = ChangeReceiver(database, name, bus)
        bus.forward_to(self._sender.add)

    @property
    def error(self) -> str | None:
        """What is wrong with either direction."""
        return self._receiver.error or self._sender.error

    def start(self) -> None:
        self._receiver.start()
        self._sender.start()

    def stop(self) -> None:
        """Send what waits, and end."""
        self._sender.stop()
        self._receiver.stop()
