"""The other processes on the same database, if there can be any: leases, heartbeats and the bridge of the bus."""

import os
import secrets
import socket
from collections.abc import Callable
from datetime import datetime

from typing_extensions import override

from service.database.engine import Database
from service.messaging.bus import ChangeBus, LeaseChanged
from service.messaging.cluster_store import LeaseStore, ProcessRegistry
from service.messaging.heartbeat import Heartbeat
from service.messaging.leader_election import LeaseKeeper
from service.messaging.process import SILENT_AFTER, HealthReport, Lease, Process, ProcessInfo
from service.settings import Settings
from wire.enums import ProcessRole

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
