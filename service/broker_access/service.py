"""Issue, rotate and revoke the MQTT credentials of machines, and reconcile broker and database.

The database is written first, then the broker. After an interruption or a restore, ``reconcile`` makes them agree
without granting access to anyone: see ``models.diff``.
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
    """A credential with its password, which is shown once and not stored."""

    credential: Credential
    password: str = field(repr=False)
    edge_toml: str = field(repr=False)


def _password() -> str:
    return secrets.token_urlsafe(32)


@dataclass
class CredentialService:
    """Manages credentials; ``security`` is None if dynamic security is turned off."""

    machines: MachineStore
    credentials: CredentialStore
    security: DynamicSecurityClient | None
    clock: PlantClock
    access: AgentAccess
    password: Callable[[], str] = field(default=_password, repr=False)
    auth_state: BrokerAuthState = field(default=BrokerAuthState.UNKNOWN, init=False)
    unavailable_reason: str | None = field(default=None, init=False)  # why dynamic security is off
    foreign: str | None = field(default=None, init=False)  # why the broker belongs to another installation
    locked_out: list[MachineId] = field(default_factory=list, init=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.security is None:
            self.auth_state, self.unavailable_reason = (
                BrokerAuthState.OFF,
                "the setting broker_dynamic_security is off",
            )

    def probe(self) -> BrokerAuthState:
        """Return whether the broker has dynamic security; :class:`Unavailable` without a connection."""
        if self.security is not None:
            state, reason = self.security.probe()
            if state is not self.auth_state:
                log.info("dynamic security of the broker: %s", reason or "on")
            self.auth_state, self.unavailable_reason = state, reason
        return self.auth_state

    def enrolled(self, machine: Machine, *, is_new: bool, who: str) -> tuple[IssuedCredential | None, str | None]:
        """Issue credentials to a newly enrolled machine that has none; or return why not.

        The enrolment succeeds in any case. A machine whose credentials were revoked gets new ones only if it had
        been retired: enrolling twice does not undo a revocation.
        """
        known = self.credentials.get(machine)
        if self.security is None or (known is not None and (known.revoked_at is None or not is_new)):
            return None, self._advice(machine.id, known)
        try:
            if not self._is_enabled():
                return None, None
            with self._exclusive():
                if not self._owns(self.security):
                    return None, f"No credentials were issued. {self.foreign}"
                claimed = self.credentials.issue_if_absent(machine, again=is_new, at=self.clock.now(), who=who)
                return (None, None) if claimed is None else (self._grant(machine, claimed), None)
        except Unavailable as error:
            if self.auth_state is not BrokerAuthState.ON:
                return (
                    None,
                    f"Whether the broker requires credentials is not known yet. {error} {_rotate(machine.id)}",
                )
            return None, f"No credentials were issued. {error} {_rotate(machine.id)}"

    def rotate(self, machine: MachineId, *, who: str) -> IssuedCredential:
        """Issue a new password; a connection with the old one is closed."""
        known = self.machines.get(machine)
        known.require_active()
        with self._exclusive():
            self.probe()  # an unavailable broker must not cost the machine its password
            if not self._owns(self._require_security()):
                raise Conflict(f"No credentials were issued. {self.foreign}")
            return self._grant(known, self.credentials.rotate(known, at=self.clock.now(), who=who))

    def revoke(self, machine: MachineId, *, who: str, reason: str | None) -> tuple[Credential | None, str | None]:
        """Revoke a machine's credentials; the second value says what has not reached the broker yet.

        The database is written first, so the revocation holds whatever happens to the broker.
        """
        known = self.machines.get(machine)
        with self._exclusive():
            self.credentials.revoke(known, at=self.clock.now(), who=who, reason=reason)
            credential = self.credentials.get(known)
            note = self._remove(known) if credential is not None else None
        if note is not None:
            log.warning("the credentials of %s are revoked, but not at the broker: %s", machine, note)
        return credential, note

    def get(self, machine: MachineId) -> tuple[Credential | None, str | None]:
        """Return a machine's credentials, and advice if something must be done."""
        known = self.credentials.get(self.machines.get(machine))
        return known, self._advice(machine, known)

    def reconcile(self) -> AclDiff | None:
        """Make broker and database agree; None without dynamic security, or if the broker is not ours."""
        if self.security is None or self.probe() is not BrokerAuthState.ON:
            return None
        with self._exclusive():
            self.credentials.disown_unconfirmed(at=self.clock.now())
            issued, snapshot = self.credentials.all(), self.security.snapshot()
            if not self._claim(self.security, issued, snapshot):
                log.warning(self.foreign)
                return None
            changes = diff(issued, snapshot)
            self._repair(self.security, changes)
            self.credentials.apply(
                matching=changes.matching, locked_out=changes.locked_out, newer=changes.newer, at=self.clock.now()
            )
            self.locked_out = sorted(changes.locked_out)
        if not changes.is_empty:
            log.warning("broker and database did not agree about credentials: %s", changes)
        return changes

    def refresh(self) -> None:
        """Read the state that the reconciling process has stored."""
        state, issued = self.probe(), self.credentials.all()
        self.locked_out = sorted(item.machine for item in issued if item.state is CredentialState.LOCKED_OUT)
        if self.security is not None and state is BrokerAuthState.ON:
            snapshot = self.security.snapshot()
            self.foreign = _foreign(ownership(self.credentials.installation(), issued, snapshot), snapshot)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Exclude all other changes of credentials, in this process and others."""
        with self._lock, self.credentials.exclusive():
            yield

    def _repair(self, security: DynamicSecurityClient, changes: AclDiff) -> None:
        if changes.unknown_clients:
            security.set_aside(changes.unknown_clients)
        if changes.withdrawn or changes.orphan_roles:
            security.remove(dict.fromkeys([*changes.withdrawn, *changes.orphan_roles]))
        for machine, generation in changes.returned.items():
            security.enable(machine, generation=generation)
        for machine in changes.missing:
            security.create_disabled(machine)
        for machine in changes.outdated:
            security.disable(machine)
        for machine in dict.fromkeys([*changes.misconfigured, *changes.wrong_roles]):
            security.repair_roles(machine)

    def _grant(self, machine: Machine, credential: Credential) -> IssuedCredential:
        password = self.password()
        try:
            self._require_security().grant(
                machine.id,
                generation=credential.generation,
                password=password,
                last_state=self._last_state(machine),
            )
        except Unavailable:
            # The broker may have applied it and only its response was lost: it then accepts an unknown password.
            self.credentials.mark_outdated(machine, at=self.clock.now())
            raise
        self.credentials.apply(matching=[machine.id], locked_out=(), newer={}, at=self.clock.now())
        name, zone = agent_name(machine.id), machine.time_zone
        text = edge_toml(machine.id, self.access, username=name, password=password, time_zone=zone)
        self.locked_out = [other for other in self.locked_out if other != machine.id]
        return IssuedCredential(credential, password, text)

    def _remove(self, machine: Machine) -> str | None:
        self.locked_out = [other for other in self.locked_out if other != machine.id]
        try:
            if self.security is not None and self._is_enabled():
                if not self._owns(self.security):
                    return f"The broker was not changed. {self.foreign}"
                self.security.remove([agent_name(machine.id)], last_state=self._last_state(machine))
                return None
        except Unavailable as error:
            return f"{error} It is removed there as soon as the broker is available."
        name = agent_name(machine.id)
        reason = self.unavailable_reason
        return f"The broker was not updated: {reason}. If it still accepts {name}, remove that user there."

    def _owns(self, security: DynamicSecurityClient) -> bool:
        """Return whether the broker is this installation's; claim it if it has no owner yet."""
        if self.foreign is None and security.installation() == self.credentials.installation():
            return True
        return self._claim(security, self.credentials.all(), security.snapshot())

    def _claim(
        self, security: DynamicSecurityClient, issued: list[Credential], snapshot: BrokerAclSnapshot
    ) -> bool:
        """Return whether the broker is ours; claim it if it has no owner yet."""
        identity = self.credentials.installation()
        owner = ownership(identity, issued, snapshot)
        self.foreign = _foreign(owner, snapshot)
        if owner is Ownership.UNCLAIMED:
            security.claim(identity)
        return self.foreign is None

    def _is_enabled(self) -> bool:
        """Return whether dynamic security is on; probe again unless it was."""
        return self.auth_state is BrokerAuthState.ON or self.probe() is BrokerAuthState.ON

    def _last_state(self, machine: Machine) -> tuple[str, bytes] | None:
        """Return the last will of an online agent: the broker publishes none for connections that it closes."""
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

    def _require_security(self) -> DynamicSecurityClient:
        """Return the dynamic-security client, or raise :class:`Conflict`."""
        if self.security is None or not self._is_enabled():
            raise Conflict(
                f"Credentials cannot be issued: {self.unavailable_reason}. See alarmcast admin broker-init."
            )
        return self.security

    def _advice(self, machine: MachineId, known: Credential | None) -> str | None:
        if known is None or self.auth_state is BrokerAuthState.OFF:
            return None
        if known.locked_out_at is not None:
            return f"The broker refuses it: its password is lost or its client is disabled. {_rotate(machine)}"
        return f"Its credentials were revoked. {_rotate(machine)}" if known.revoked_at is not None else None


def _rotate(machine: MachineId) -> str:
    return f"To issue some: alarmcast admin machine rotate {machine}"


def adopt(credentials: CredentialStore, security: DynamicSecurityClient) -> list[str]:
    """Claim the broker for this database; disable clients that it does not know, and return their names.

    They keep their passwords, so that the database that knows them can claim the broker back.
    """
    identity, known = credentials.installation(), {credential.name for credential in credentials.all()}
    clients = security.snapshot().clients
    unknown = sorted(name for name, client in clients.items() if client.enabled and name not in known)
    if unknown:
        security.set_aside(unknown)
    security.claim(identity)
    return unknown


def _foreign(owner: Ownership, snapshot: BrokerAclSnapshot) -> str | None:
    if owner in (Ownership.OWN, Ownership.UNCLAIMED):
        return None
    enabled = sum(client.enabled for client in snapshot.clients.values())
    reason = (
        "The broker belongs to another installation than this database"
        if owner is Ownership.FOREIGN
        else f"The broker has {enabled} enabled machines and this database knows none of them"
    )
    return (
        f"{reason}, so its credentials are not changed. Check that ALARMCAST_DATA_DIR or ALARMCAST_DATABASE_URL "
        "names the right database, and that its disk is mounted. If this database is to manage the broker from "
        "now on: alarmcast admin broker-adopt"
    )
