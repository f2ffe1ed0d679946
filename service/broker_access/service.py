"""Credentials: issued with a machine, shown once, issued anew, taken away; and broker and database made to agree.

The database is written first, and the broker told after it. Cut off in between, or restored from different
times, the two are brought together again by ``reconcile``, which lets nobody in: see ``core/credential.py``.
"""

import logging
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from service.broker_access.dynamic_security import DynamicSecurityClient
from service.broker_access.edge_toml import AgentAccess, edge_toml
from service.broker_access.models import (
    AclDiff,
    BrokerAclSnapshot,
    BrokerAuthState,
    Credential,
    Ownership,
    diff,
    ownership,
)
from service.broker_access.store import CredentialStore
from service.errors import Conflict, Unavailable
from service.machines.models import Machine
from service.machines.store import MachineStore
from wire.clock import PlantClock
from wire.codec import encode
from wire.enums import CredentialState
from wire.identity import MachineId
from wire.state import AgentState
from wire.topics import Channel, agent_name, topic

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class IssuedCredential:
    """A credential with its password, which is shown once and kept nowhere."""

    credential: Credential
    password: str = field(repr=False)
    edge_toml: str = field(repr=False)


def _password() -> str:
    return secrets.token_urlsafe(32)


@dataclass
class CredentialService:
    """The flow and its ports; ``security`` of None means that the broker is none of ours to guard."""

    machines: MachineStore
    credentials: CredentialStore
    security: DynamicSecurityClient | None
    clock: PlantClock
    access: AgentAccess
    password: Callable[[], str] = field(default=_password, repr=False)
    auth_state: BrokerAuthState = field(default=BrokerAuthState.UNKNOWN, init=False)
    unavailable_reason: str | None = field(default=None, init=False)  # the broker is not guarded
    foreign: str | None = field(default=None, init=False)  # why the broker is not this installation's to change
    locked_out: list[MachineId] = field(default_factory=list, init=False)
    _one: Lock = field(default_factory=Lock, init=False, repr=False)  # changes to the broker, one after another

    def __post_init__(self) -> None:
        if self.security is None:
            self.auth_state, self.unavailable_reason = (
                BrokerAuthState.OFF,
                "the setting broker_dynamic_security is off",
            )

    def probe(self) -> BrokerAuthState:
        """Ask the broker whether it is guarded; :class:`Unavailable` while it is away."""
        if self.security is not None:
            guard, why_not = self.security.probe()
            if guard is not self.auth_state:
                log.info("dynamic security of the broker: %s", why_not or "on")
            self.auth_state, self.unavailable_reason = guard, why_not
        return self.auth_state

    def enrolled(self, machine: Machine, *, is_new: bool, who: str) -> tuple[IssuedCredential | None, str | None]:
        """Issue to a machine that has just been enrolled and holds none; or say what keeps us from it.

        The enrolment stands whatever happens here. A machine whose credentials were revoked gets new ones only
        if it had been retired: whoever enrols twice does not undo a revocation.
        """
        known = self.credentials.get(machine)
        if self.security is None or (known is not None and (known.revoked_at is None or not is_new)):
            return None, self._advice(machine.id, known)
        try:
            if not self._is_guarded():
                return None, None
            with self._alone():
                if not self._owns(self.security):
                    return None, f"No credentials were issued. {self.foreign}"
                claimed = self.credentials.issue_if_absent(machine, again=is_new, at=self.clock.now(), who=who)
                return (None, None) if claimed is None else (self._grant(machine, claimed), None)
        except Unavailable as error:
            if self.auth_state is not BrokerAuthState.ON:
                return (
                    None,
                    f"Whether the broker wants credentials is not known yet. {error} {_rotate(machine.id)}",
                )
            return None, f"No credentials were issued. {error} {_rotate(machine.id)}"

    def rotate(self, machine: MachineId, *, who: str) -> IssuedCredential:
        """Issue a new password; whoever is there with the old one is thrown out."""
        known = self.machines.get(machine)
        known.require_active()
        with self._alone():
            self.probe()  # a broker that is away must not cost the machine the password it has
            if not self._owns(self._guarding()):
                raise Conflict(f"No credentials were issued. {self.foreign}")
            return self._grant(known, self.credentials.rotate(known, at=self.clock.now(), who=who))

    def revoke(self, machine: MachineId, *, who: str, reason: str | None) -> tuple[Credential | None, str | None]:
        """Throw a machine out and let it in no more; the second answer says what has not reached the broker yet.

        Written down first, so that it holds whatever happens to the broker.
        """
        known = self.machines.get(machine)
        with self._alone():
            self.credentials.revoke(known, at=self.clock.now(), who=who, reason=reason)
            held = self.credentials.get(known)
            note = self._disable(known) if held is not None else None
        if note is not None:
            log.warning("the credentials of %s are revoked, but not at the broker: %s", machine, note)
        return held, note

    def get(self, machine: MachineId) -> tuple[Credential | None, str | None]:
        """Return a machine's credentials, and what should be done about them."""
        known = self.credentials.get(self.machines.get(machine))
        return known, self._advice(machine, known)

    def reconcile(self) -> AclDiff | None:
        """Make broker and database agree; None while the broker is not guarded, or belongs to another database."""
        if self.security is None or self.probe() is not BrokerAuthState.ON:
            return None
        with self._alone():
            self.credentials.disown_unconfirmed(at=self.clock.now())
            issued, guarded = self.credentials.all(), self.security.snapshot()
            if not self._claims(self.security, issued, guarded):
                log.warning(self.foreign)
                return None
            found = diff(issued, guarded)
            self._repair(self.security, found)
            self.credentials.apply(
                well=found.matching, locked_out=found.locked_out, newer=found.newer, at=self.clock.now()
            )
            self.locked_out = sorted(found.locked_out)
        if not found.is_empty:
            log.warning("broker and database did not agree about credentials: %s", found)
        return found

    def refresh(self) -> None:
        """Find out what the process that reconciles has found."""
        guard, issued = self.probe(), self.credentials.all()
        self.locked_out = sorted(one.machine for one in issued if one.state is CredentialState.LOCKED_OUT)
        if self.security is not None and guard is BrokerAuthState.ON:
            guarded = self.security.snapshot()
            self.foreign = _foreign(ownership(self.credentials.installation(), issued, guarded), guarded)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Change broker and database while nobody else does, in this process or another."""
        with self._one, self.credentials.exclusive():
            yield

    def _repair(self, security: DynamicSecurityClient, found: AclDiff) -> None:
        if found.unknown_clients:
            security.set_aside(found.unknown_clients)
        if found.withdrawn or found.orphan_roles:
            security.remove(dict.fromkeys([*found.withdrawn, *found.orphan_roles]))
        for machine, generation in found.returned.items():
            security.let_back(machine, generation=generation)
        for machine in found.missing:
            security.create_disabled(machine)
        for machine in found.outdated:
            security.disable(machine)
        for machine in dict.fromkeys([*found.misconfigured, *found.wrong_roles]):
            security.repair_roles(machine)

    def _grant(self, machine: Machine, credential: Credential) -> IssuedCredential:
        password = self.password()
        try:
            self._guarding().grant(
                machine.id,
                generation=credential.generation,
                password=password,
                farewell=self._farewell(machine),
            )
        except Unavailable:
            # The broker may have done it and only its answer was lost: then it takes a password that nobody has.
            self.credentials.mark_outdated(machine, at=self.clock.now())
            raise
        self.credentials.apply(well=[machine.id], locked_out=(), newer={}, at=self.clock.now())
        name, zone = agent_name(machine.id), machine.time_zone
        text = edge_toml(machine.id, self.access, username=name, password=password, time_zone=zone)
        self.locked_out = [one for one in self.locked_out if one != machine.id]
        return IssuedCredential(credential, password, text)

    def _disable(self, machine: Machine) -> str | None:
        self.locked_out = [one for one in self.locked_out if one != machine.id]
        try:
            if self.security is not None and self._is_guarded():
                if not self._owns(self.security):
                    return f"The broker was not told. {self.foreign}"
                self.security.remove([agent_name(machine.id)], farewell=self._farewell(machine))
                return None
        except Unavailable as error:
            return f"{error} It is removed there as soon as the broker can be asked."
        name = agent_name(machine.id)
        reason = self.unavailable_reason
        return f"The broker was not updated: {reason}. If it still accepts {name}, remove that user there."

    def _owns(self, security: DynamicSecurityClient) -> bool:
        """Say whether the broker is this installation's, and claim it if it is nobody's."""
        if self.foreign is None and security.installation() == self.credentials.installation():
            return True
        return self._claims(security, self.credentials.all(), security.snapshot())

    def _claims(
        self, security: DynamicSecurityClient, issued: list[Credential], guarded: BrokerAclSnapshot
    ) -> bool:
        identity = self.credentials.installation()
        found = ownership(identity, issued, guarded)
        self.foreign = _foreign(found, guarded)
        if found is Ownership.UNCLAIMED:
            security.claim(identity)
        return self.foreign is None

    def _is_guarded(self) -> bool:
        """Say whether the broker is guarded, and ask it unless it was: it may have become so since."""
        return self.auth_state is BrokerAuthState.ON or self.probe() is BrokerAuthState.ON

    def _farewell(self, machine: Machine) -> tuple[str, bytes] | None:
        """Return what the will of an agent that is online would say: nobody publishes it for whom we throw out."""
        agent = self.machines.agent(machine)
        if agent is None or not agent.online or agent.version is None or agent.epoch is None:
            return None
        state = AgentState(
            online=False,
            agent=agent.version,
            epoch=agent.epoch,
            spooled=agent.spooled or 0,
            skew_ms=agent.skew_ms,
            at=self.clock.now(),
            skipped=agent.skipped,
            last_skipped=agent.last_skipped,
            warning=agent.warning,
        )
        return topic(machine.id, Channel.STATE), encode(state)

    def _guarding(self) -> DynamicSecurityClient:
        """Return the broker's security, or say that there is none."""
        if self.security is None or not self._is_guarded():
            raise Conflict(
                f"There are no credentials to issue: {self.unavailable_reason}. See alarmcast admin broker-init."
            )
        return self.security

    def _advice(self, machine: MachineId, known: Credential | None) -> str | None:
        if known is None or self.auth_state is BrokerAuthState.OFF:
            return None
        if known.locked_out_at is not None:
            return f"The broker does not let it in: it has lost its password, or keeps it out. {_rotate(machine)}"
        return f"Its credentials were revoked. {_rotate(machine)}" if known.revoked_at is not None else None


def _rotate(machine: MachineId) -> str:
    return f"To issue some: alarmcast admin machine rotate {machine}"


def adopt(credentials: CredentialStore, security: DynamicSecurityClient) -> list[str]:
    """Give the broker to this database, whosever it was; return whom it lets in no more: the unknown.

    They are disabled and keep their passwords, so that the database that knows them can take the broker back.
    """
    identity, known = credentials.installation(), {one.name for one in credentials.all()}
    found = security.snapshot()
    strangers = sorted(name for name, one in found.clients.items() if one.enabled and name not in known)
    if strangers:
        security.set_aside(strangers)
    security.claim(identity)
    return strangers


def _foreign(found: Ownership, guarded: BrokerAclSnapshot) -> str | None:
    if found in (Ownership.OWN, Ownership.UNCLAIMED):
        return None
    admitted = sum(holder.enabled for holder in guarded.clients.values())
    why = (
        "The broker belongs to another installation than this database"
        if found is Ownership.FOREIGN
        else f"The broker lets in {admitted} machines and this database knows none of them"
    )
    return (
        f"{why}, so its credentials are left as they are. Check that ALARMCAST_DATA_DIR or ALARMCAST_DATABASE_URL "
        "names the right database, and that its disk is mounted. If this database is to manage the broker from "
        "now on: alarmcast admin broker-adopt"
    )
