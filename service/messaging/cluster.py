"""The other processes on the same database, if there can be any: leases, heartbeats and the bridge of the bus."""

import logging
import os
import secrets
import socket
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import datetime, timedelta
from threading import Event

from typing_extensions import override

from service.database.engine import Database
from service.errors import Unavailable
from service.messaging.background import BackgroundThread
from service.messaging.bus import ChangeBus, LeaseChanged
from service.messaging.cluster_store import LeaseStore, ProcessRegistry
from service.messaging.process import SILENT_AFTER, HealthReport, Lease, Process, ProcessInfo
from service.settings import Settings
from wire.enums import ProcessRole

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=10)
_RENEW_INTERVAL_S = 2.0
_SAFETY_MARGIN_S = 2.0  # before the database gives the lease to another process; work under way may end in it


class LeaseKeeper(BackgroundThread):
    """Holds leases by the clock of this process: after a long suspension it finds them expired."""

    def __init__(
        self,
        process: ProcessInfo,
        wanted: Collection[Lease],
        *,
        leases: LeaseStore,
        bus: ChangeBus,
        ttl: timedelta = LEASE,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("lease keeper")
        self._process, self._wanted, self._ttl = process, frozenset(wanted), ttl
        self._leases, self._bus, self._monotonic = leases, bus, monotonic
        self._until: dict[Lease, float] = {}
        self._published: set[Lease] = set()

    def is_holder(self, lease: Lease) -> bool:
        """Return whether this process certainly holds a lease now."""
        return self._monotonic() < self._until.get(lease, float("-inf"))

    @property
    def held(self) -> tuple[str, ...]:
        """The names of the leases that this process holds now."""
        return tuple(sorted(lease.value for lease in self._wanted if self.is_holder(lease)))

    def stop(self) -> None:
        """End, and release the leases at once."""
        super().stop()
        self._until = {}
        with suppress(Unavailable):
            self._leases.release(self._process.name)

    def renew(self) -> None:
        """Renew the leases that are held, and acquire those that are free."""
        started = self._monotonic()
        held = self._leases.acquire(self._wanted, self._process.name, self._ttl)
        self._until = dict.fromkeys(held, started + self._ttl.total_seconds() - _SAFETY_MARGIN_S)
        self._publish_changes()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.renew()
                self.last_error = None
            except Exception as error:  # noqa: BLE001 - recorded, and tried again
                self._record_error(error)
                self._publish_changes()
            self._stopping.wait(_RENEW_INTERVAL_S)

    def _publish_changes(self) -> None:
        held = {lease for lease in self._wanted if self.is_holder(lease)}
        for lease in sorted(held ^ self._published):
            log.info("lease %s: %s", lease.value, "acquired" if lease in held else "lost")
            self._bus.publish(LeaseChanged(lease, lease in held))
        self._published = held


_INTERVAL_S = 2.0


class Heartbeat(BackgroundThread):
    """Reports to the process registry at an interval; a slow report delays nothing else."""

    def __init__(
        self,
        process: ProcessInfo,
        *,
        registry: ProcessRegistry,
        report: Callable[[], HealthReport],
        interval_s: float = _INTERVAL_S,
    ) -> None:
        super().__init__("heartbeat")
        self._process, self._registry, self._report, self._interval_s = process, registry, report, interval_s
        self._triggered = Event()

    def trigger(self) -> None:
        """Send the next heartbeat at once: something has changed."""
        self._triggered.set()

    def send(self) -> None:
        self._registry.report(self._process, self._report())

    def stop(self) -> None:
        """End, and remove this process from the registry."""
        self._stopping.set()
        self._triggered.set()
        super().stop()
        with suppress(Unavailable):
            self._registry.remove(self._process.name)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._triggered.clear()
            try:
                self.send()
                self.last_error = None
            except Exception as error:  # noqa: BLE001 - recorded, and tried again
                self._record_error(error)
            if not self._stopping.is_set():
                self._triggered.wait(self._interval_s)


_LEASES = {ProcessRole.WORKER: Lease.LEADER, ProcessRole.INGEST: Lease.AGENT_STATES}


def process_info(settings: Settings, now: datetime) -> ProcessInfo:
    """Return a unique name for this process, with its roles."""
    name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
    return ProcessInfo(name, settings.process_roles, now)


class SingleProcess:
    """The only process on its database, as on SQLite: it holds every lease."""

    @property
    def errors(self) -> dict[str, str | None]:
        """What is wrong with the connection to the other processes."""
        return {}

    def is_holder(self, lease: Lease) -> bool:  # noqa: ARG002
        return True

    def processes(self) -> list[Process]:
        """Return the processes that were seen recently, this one included."""
        return []

    def start(self) -> None:
        """Start the threads."""

    def stop(self) -> None:
        """Release the leases and end the threads."""


class PostgresCluster(SingleProcess):
    """One of several processes on a PostgreSQL database."""

    def __init__(
        self,
        process: ProcessInfo,
        database: Database,
        bus: ChangeBus,
        report: Callable[[tuple[str, ...]], HealthReport],  # is called with the leases that are held
    ) -> None:
        from service.messaging.pg_bridge import PgBridge  # noqa: PLC0415 - it loads PostgreSQL's driver

        leases = {_LEASES[role] for role in process.roles if role in _LEASES}
        self._registry = ProcessRegistry(database)
        self._lease_keeper = LeaseKeeper(process, leases, leases=LeaseStore(database), bus=bus)
        self._heartbeat = Heartbeat(
            process, registry=self._registry, report=lambda: report(self._lease_keeper.held)
        )
        self._bridge = PgBridge(bus, database, process.name)
        bus.subscribe(LeaseChanged, lambda _event: self._heartbeat.trigger())

    @property
    @override
    def errors(self) -> dict[str, str | None]:
        return {
            "leases": self._lease_keeper.error,
            "heartbeat": self._heartbeat.error,
            "changes": self._bridge.error,
        }

    @override
    def is_holder(self, lease: Lease) -> bool:
        return self._lease_keeper.is_holder(lease)

    @override
    def processes(self) -> list[Process]:
        return self._registry.recent(SILENT_AFTER)

    @override
    def start(self) -> None:
        self._bridge.start()
        self._lease_keeper.start()
        self._heartbeat.start()

    @override
    def stop(self) -> None:
        self._lease_keeper.stop()  # first, so that others take over at once
        self._heartbeat.stop()
        self._bridge.stop()
