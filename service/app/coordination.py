"""The other processes on the same database, if there can be any: whose turn it is, who is there, who says what."""

import os
import secrets
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from typing_extensions import override

from service.database.engine import Database
from service.machines.models import Machine
from service.messaging.change_event import ChangeEvent
from service.messaging.change_listener import ChangeListener
from service.messaging.change_publisher import ChangePublisher
from service.messaging.heartbeat import Heartbeat
from service.messaging.leader_election import LeaseKeeper
from service.messaging.lease_store import LeaseStore
from service.messaging.process import SILENT_AFTER, HealthReport, Lease, Process, ProcessInfo
from service.messaging.process_store import ProcessRegistry
from service.messaging.pubsub import EventBus
from service.settings import Settings
from wire.enums import ProcessRole
from wire.identity import MachineId

EVERYTHING = frozenset(ProcessRole)
_WANTED = {ProcessRole.WORKER: Lease.LEADER, ProcessRole.INGEST: Lease.AGENT_STATES}


def process_info(settings: Settings, now: datetime) -> ProcessInfo:
    """Return a name for this process that no other has."""
    name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
    return ProcessInfo(name, settings.process_roles, now)


class SingleProcess:
    """What a process knows of the others; this is the company of one that is alone, as on SQLite."""

    @property
    def errors(self) -> dict[str, str | None]:
        """What is wrong with our ties to the others."""
        return {}

    def is_holder(self, turn: Lease) -> bool:  # noqa: ARG002 - whatever it is, nobody else can do it
        """Say whether it is our turn now."""
        return True

    def publish(self, signal: ChangeEvent) -> None:
        """Let the others know, soon."""

    def touched(self, machines: Iterable[MachineId]) -> None:
        """Let the others know that something arrived for these machines."""

    def late(self, machines: Iterable[Machine]) -> None:
        """Let the others know that something of an earlier time arrived."""

    def processes(self) -> list[Process]:
        """Return who was seen lately, this process among them."""
        return []

    def start(self) -> None:
        """Begin to take turns, to speak and to listen."""

    def stop(self) -> None:
        """Give the turns back, say what is left to say, and listen no more."""


@dataclass
class ClusterCallbacks:
    """What a cluster asks of this process and does to it."""

    report: Callable[[tuple[str, ...]], HealthReport]  # with the turns it holds
    heard: Callable[[ChangeEvent], None]
    deaf: Callable[[], None]
    hear_for_all: Callable[[bool], None]


@dataclass
class PostgresCluster(SingleProcess):
    """On PostgreSQL: any number of processes, of which this is one."""

    member: ProcessInfo
    database: Database
    feed: EventBus
    hooks: ClusterCallbacks
    _processes: ProcessRegistry = field(init=False)
    _steward: LeaseKeeper = field(init=False)
    _presence: Heartbeat = field(init=False)
    _telegraph: ChangePublisher = field(init=False)
    _ear: ChangeListener = field(init=False)

    def __post_init__(self) -> None:
        from service.messaging.pg_listen import PgNotify  # noqa: PLC0415 - it loads PostgreSQL's driver

        signals = PgNotify(self.database, self.member.name)
        self._processes = ProcessRegistry(self.database)
        self._steward = LeaseKeeper(
            self.member,
            {_WANTED[role] for role in self.member.roles if role in _WANTED},
            turns=LeaseStore(self.database),
            changed=self._turned,
        )
        self._presence = Heartbeat(
            self.member,
            processes=self._processes,
            report=lambda: self.hooks.report(self._steward.held),
        )
        self._telegraph = ChangePublisher(signals.send, self.feed)
        self._ear = ChangeListener(signals, heard=self.hooks.heard, deaf=self.hooks.deaf)

    @property
    @override
    def errors(self) -> dict[str, str | None]:
        signals = self._ear.error or self._telegraph.error
        return {"leases": self._steward.error, "heartbeat": self._presence.error, "changes": signals}

    @override
    def is_holder(self, turn: Lease) -> bool:
        return self._steward.is_holder(turn)

    @override
    def publish(self, signal: ChangeEvent) -> None:
        self._telegraph.publish(signal)

    @override
    def touched(self, machines: Iterable[MachineId]) -> None:
        self._telegraph.touched(machines)

    @override
    def late(self, machines: Iterable[Machine]) -> None:
        self._telegraph.late(machines)

    @override
    def processes(self) -> list[Process]:
        return self._processes.recent(SILENT_AFTER)

    @override
    def start(self) -> None:
        self._ear.start()
        self._telegraph.start()
        self._steward.start()
        self._presence.start()

    @override
    def stop(self) -> None:
        self._steward.stop()  # first, so that others take over at once
        self._presence.stop()
        self._telegraph.stop()
        self._ear.stop()

    def _turned(self, turn: Lease, mine: bool) -> None:  # noqa: FBT001 - the steward's callback
        self._presence.trigger()
        if turn is Lease.AGENT_STATES:
            self.hooks.hear_for_all(mine)
