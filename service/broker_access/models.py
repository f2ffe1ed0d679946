"""What lets a machine in at the broker: who holds it, what it may do there, and where broker and database differ.

The password is nobody's here: the broker keeps its hash, and the machine keeps it. What both sides know is a
generation, which grows whenever a new one is issued; so each can tell whether the other is as new as itself.
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
    """Whether the broker checks who speaks, and lets us say who may."""

    UNKNOWN = "unknown"  # it has not been asked yet, or has not answered
    ON = "on"
    OFF = "off"


@dataclass(frozen=True)
class Credential:
    """A machine's credentials as the database knows them; times are the plant's."""

    machine: MachineId
    generation: int
    issued_at: datetime
    rotated_at: datetime | None = None
    revoked_at: datetime | None = None
    locked_out_at: datetime | None = None

    @property
    def name(self) -> str:
        """The user name, which is the client id and the name of the role too."""
        return agent_name(self.machine)

    @property
    def state(self) -> CredentialState:
        """How it is."""
        if self.revoked_at is not None:
            return CredentialState.REVOKED
        return CredentialState.ACTIVE if self.locked_out_at is None else CredentialState.LOCKED_OUT


class Acl(NamedTuple):
    """Something a role allows, in the plugin's words."""

    kind: str
    topic: str


def acls_for(machine: MachineId) -> frozenset[Acl]:
    """Return what a machine's agent may do: on its own topics, and in the directions of the contract."""
    sends = {Acl("publishClientSend", topic(machine, channel)) for channel in AGENT_SENDS}
    hears = {
        Acl(kind, topic(machine, channel))
        for channel in AGENT_HEARS
        for kind in ("subscribeLiteral", "publishClientReceive")
    }
    return frozenset(sends | hears)


@dataclass(frozen=True)
class BrokerClient:
    """A client of the broker."""

    name: str
    client_id: str | None
    generation: int | None
    enabled: bool
    roles: tuple[str, ...]
    set_aside: bool = False  # disabled because no database knew it, not because somebody wanted it out


@dataclass(frozen=True)
class BrokerAclSnapshot:
    """What the broker knows of our agents: clients and roles with their prefix, and nothing else."""

    clients: Mapping[str, BrokerClient]
    roles: Mapping[str, frozenset[Acl]]
    installation: str | None = None  # whose agents these are; None while no installation has claimed the broker


class Ownership(Enum):
    """Whether the agents that a broker knows are those of a database."""

    OWN = "own"
    UNCLAIMED = "unclaimed"  # nobody's yet, and nothing speaks against claiming it
    FOREIGN = "foreign"  # another installation has claimed it
    DOUBTFUL = "doubtful"  # it lets in machines, and the database knows none of them


def ownership(identity: str, issued: Iterable[Credential], found: BrokerAclSnapshot) -> Ownership:
    """Say whether a broker belongs to the installation of this identity.

    Whoever starts on an empty or a wrong database must not change passwords that only the broker has.
    """
    if found.installation not in (None, identity):
        return Ownership.FOREIGN
    known = {one.name for one in issued}
    admitted = {name for name, holder in found.clients.items() if holder.enabled}
    is_related = bool(known) if found.installation else bool(known & found.clients.keys())
    if admitted and not is_related:
        return Ownership.DOUBTFUL
    return Ownership.OWN if found.installation else Ownership.UNCLAIMED


@dataclass
class AclDiff:
    """What it takes for broker and database to agree; machines by id, strangers by the name they have there."""

    unknown_clients: list[str] = field(default_factory=list)  # in no database, and let in: disabled
    withdrawn: list[str] = field(default_factory=list)  # revoked: removed
    orphan_roles: list[str] = field(default_factory=list)  # roles of nobody: removed
    returned: dict[MachineId, int] = field(default_factory=dict)  # were disabled as strangers, and are none
    missing: list[MachineId] = field(default_factory=list)  # made, but kept out: their password is lost
    outdated: list[MachineId] = field(default_factory=list)  # the broker takes an old password: kept out
    disabled: list[MachineId] = field(default_factory=list)  # the broker lets them not in; a person must look
    misconfigured: list[MachineId] = field(
        default_factory=list
    )  # let in, with another role or client id than they should
    wrong_roles: list[MachineId] = field(default_factory=list)  # their role allows something else
    newer: dict[MachineId, int] = field(default_factory=dict)  # the database is the older one: it learns
    matching: list[MachineId] = field(default_factory=list)

    @property
    def locked_out(self) -> list[MachineId]:
        """Those that cannot come in until new credentials are issued."""
        return [*self.missing, *self.outdated, *self.disabled]

    @property
    def is_empty(self) -> bool:
        """Whether broker and database agree, but for who is known to be kept out."""
        changes = (
            self.unknown_clients,
            self.withdrawn,
            self.orphan_roles,
            self.missing,
            self.outdated,
            self.misconfigured,
        )
        return not (any(changes) or self.wrong_roles or self.newer or self.returned)


def diff(issued: Iterable[Credential], found: BrokerAclSnapshot) -> AclDiff:
    """Hold the database against the broker.

    Nobody is let in by this whom a person did not let in before: where the two disagree about a password, or one
    of them was restored from a time before it was changed or revoked, the machine stays out until a person issues
    a new one. Only where the database alone is behind, and the broker holds a newer password, is that believed.
    Whom the database does not know at all is disabled and keeps its password: the database may be an old one, and
    a newer one that knows it lets it back in.
    """
    told = AclDiff()
    known = {one.name: one for one in issued}
    wanted = {name: one for name, one in known.items() if one.revoked_at is None}
    told.unknown_clients = sorted(name for name, one in found.clients.items() if name not in known and one.enabled)
    told.withdrawn = sorted(name for name in found.clients if name in known and name not in wanted)
    told.orphan_roles = sorted(
        name for name in found.roles if name not in wanted and (name in known or name not in found.clients)
    )
    for name, one in sorted(wanted.items()):
        _compare(one, found.clients.get(name), told)
        if name in found.clients and found.roles.get(name) != acls_for(one.machine):
            told.wrong_roles.append(one.machine)
    return told


def _compare(one: Credential, holder: BrokerClient | None, told: AclDiff) -> None:
    if holder is None:
        told.missing.append(one.machine)
        return
    if (holder.client_id, holder.roles) != (one.name, (one.name,)):
        told.misconfigured.append(one.machine)
    if not holder.enabled and not (holder.set_aside and (holder.generation or 0) >= one.generation):
        told.disabled.append(one.machine)
    elif holder.generation is None or holder.generation < one.generation:
        told.outdated.append(one.machine)
    else:
        told.matching.append(one.machine)
        if not holder.enabled:
            told.returned[one.machine] = holder.generation
        if holder.generation > one.generation:
            told.newer[one.machine] = holder.generation


def is_managed(name: str) -> bool:
    """Say whether a client or role of the broker is one that we may touch."""
    return name.startswith(AGENTS)
