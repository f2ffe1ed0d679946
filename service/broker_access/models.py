"""MQTT credentials and ACLs of machines, and the differences between broker and database.

The database has no password: the broker stores its hash, the machine the password itself. Both sides store a
generation, which grows with each new password; so each can tell whether the other is up to date.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, StrEnum
from typing import NamedTuple

from wire.enums import CredentialState
from wire.identity import MachineId
from wire.topics import AGENT_HEARS, AGENT_SENDS, AGENTS, agent_name, topic


class BrokerAuthState(StrEnum):
    """Whether the broker has dynamic security that the service may manage."""

    UNKNOWN = "unknown"  # not probed yet, or no answer
    ON = "on"
    OFF = "off"


@dataclass(frozen=True)
class Credential:
    """A machine's credentials in the database; times are plant times."""

    machine: MachineId
    generation: int
    issued_at: datetime
    rotated_at: datetime | None = None
    revoked_at: datetime | None = None
    locked_out_at: datetime | None = None

    @property
    def name(self) -> str:
        """The user name, client id and role name."""
        return agent_name(self.machine)

    @property
    def state(self) -> CredentialState:
        """The state shown to people."""
        if self.revoked_at is not None:
            return CredentialState.REVOKED
        return CredentialState.ACTIVE if self.locked_out_at is None else CredentialState.LOCKED_OUT


class Acl(NamedTuple):
    """One permission of a role, in the plugin's terms."""

    kind: str
    topic: str


def acls_for(machine: MachineId) -> frozenset[Acl]:
    """Return the ACLs of a machine's agent: its own topics, in the directions of the contract."""
    sends = {Acl("publishClientSend", topic(machine, channel)) for channel in AGENT_SENDS}
    receives = {
        Acl(kind, topic(machine, channel))
        for channel in AGENT_HEARS
        for kind in ("subscribeLiteral", "publishClientReceive")
    }
    return frozenset(sends | receives)


@dataclass(frozen=True)
class BrokerClient:
    """A client of the broker."""

    name: str
    client_id: str | None
    generation: int | None
    enabled: bool
    roles: tuple[str, ...]
    set_aside: bool = False  # disabled because the database did not know it, not revoked


@dataclass(frozen=True)
class BrokerAclSnapshot:
    """The agents' clients and roles in the broker."""

    clients: Mapping[str, BrokerClient]
    roles: Mapping[str, frozenset[Acl]]
    installation: str | None = None  # the owner; None if unclaimed


class Ownership(Enum):
    """Whether the broker belongs to this database."""

    OWN = "own"
    UNCLAIMED = "unclaimed"  # no owner yet; may be claimed
    FOREIGN = "foreign"  # another installation has claimed it
    DOUBTFUL = "doubtful"  # it has enabled machines, and the database knows none of them


def ownership(identity: str, issued: Iterable[Credential], snapshot: BrokerAclSnapshot) -> Ownership:
    """Return whether a broker belongs to an installation.

    A start on an empty or wrong database must not change passwords that only the broker has.
    """
    if snapshot.installation not in (None, identity):
        return Ownership.FOREIGN
    known = {credential.name for credential in issued}
    enabled = {name for name, client in snapshot.clients.items() if client.enabled}
    is_related = bool(known) if snapshot.installation else bool(known & snapshot.clients.keys())
    if enabled and not is_related:
        return Ownership.DOUBTFUL
    return Ownership.OWN if snapshot.installation else Ownership.UNCLAIMED


@dataclass
class AclDiff:
    """The changes that make broker and database agree; unknown clients and roles by their name in the broker."""

    unknown_clients: list[str] = field(default_factory=list)  # enabled and not in the database: to disable
    withdrawn: list[str] = field(default_factory=list)  # revoked: to remove
    orphan_roles: list[str] = field(default_factory=list)  # roles without a client: to remove
    returned: dict[MachineId, int] = field(
        default_factory=dict
    )  # were disabled as unknown and are known: to enable
    missing: list[MachineId] = field(default_factory=list)  # to create disabled: their password is lost
    outdated: list[MachineId] = field(default_factory=list)  # the broker has an old password: to disable
    disabled: list[MachineId] = field(default_factory=list)  # disabled in the broker: to be rotated by a person
    misconfigured: list[MachineId] = field(default_factory=list)  # wrong role or client id
    wrong_roles: list[MachineId] = field(default_factory=list)  # their role has other ACLs
    newer: dict[MachineId, int] = field(default_factory=dict)  # the broker has a newer generation: to store
    matching: list[MachineId] = field(default_factory=list)

    @property
    def locked_out(self) -> list[MachineId]:
        """Machines that cannot connect until new credentials are issued."""
        return [*self.missing, *self.outdated, *self.disabled]

    @property
    def is_empty(self) -> bool:
        """Whether broker and database agree, disabled machines aside."""
        changes = (
            self.unknown_clients,
            self.withdrawn,
            self.orphan_roles,
            self.missing,
            self.outdated,
            self.misconfigured,
        )
        return not (any(changes) or self.wrong_roles or self.newer or self.returned)


def diff(issued: Iterable[Credential], snapshot: BrokerAclSnapshot) -> AclDiff:
    """Compare the database with the broker; the result grants access to no machine that had none.

    Where the two disagree about a password, or one was restored from an older state, the machine is refused until
    a person issues a new password. Only if the database alone is behind is the broker's newer generation accepted.
    Unknown clients are disabled and keep their password: a newer database that knows them can enable them again.
    """
    result = AclDiff()
    known = {credential.name: credential for credential in issued}
    active = {name: credential for name, credential in known.items() if credential.revoked_at is None}
    clients, roles = snapshot.clients, snapshot.roles
    result.unknown_clients = sorted(name for name, item in clients.items() if name not in known and item.enabled)
    result.withdrawn = sorted(name for name in clients if name in known and name not in active)
    result.orphan_roles = sorted(
        name for name in roles if name not in active and (name in known or name not in clients)
    )
    for name, credential in sorted(active.items()):
        _compare(credential, clients.get(name), result)
        if name in clients and roles.get(name) != acls_for(credential.machine):
            result.wrong_roles.append(credential.machine)
    return result


def _compare(credential: Credential, client: BrokerClient | None, result: AclDiff) -> None:
    machine = credential.machine
    if client is None:
        result.missing.append(machine)
        return
    if (client.client_id, client.roles) != (credential.name, (credential.name,)):
        result.misconfigured.append(machine)
    if not client.enabled and not (client.set_aside and (client.generation or 0) >= credential.generation):
        result.disabled.append(machine)
    elif client.generation is None or client.generation < credential.generation:
        result.outdated.append(machine)
    else:
        result.matching.append(machine)
        if not client.enabled:
            result.returned[machine] = client.generation
        if client.generation > credential.generation:
            result.newer[machine] = client.generation


def is_managed(name: str) -> bool:
    """Return whether a client or role of the broker belongs to an agent."""
    return name.startswith(AGENTS)
