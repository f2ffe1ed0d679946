"""Stored MQTT credentials of machines, without passwords."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import ColumnElement, Connection, Row, or_, select, text, update

from service.auth.audit_store import record
from service.broker_access.models import Credential
from service.database.dialect import insert_rows
from service.database.engine import Database
from service.database.locks import Advisory
from service.database.tables import credentials, installation, machines
from service.machines.models import Machine
from wire.identity import MachineId
from wire.timestamps import from_us, to_us
from wire.topics import agent_name

_ROWS = select(credentials, machines.c.site, machines.c.machine).join_from(credentials, machines)
_COLUMNS = ("machine_id", "username", "client_id", "generation", "issued_us", "unconfirmed_us")


@dataclass(frozen=True)
class CredentialStore:
    """One row per machine; its user name never changes."""

    database: Database

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Exclude other processes from changing credentials; with SQLite there are none."""
        if self.database.is_sqlite:
            yield
            return
        with self.database.write(no_timeout=True) as connection:  # a broker may take its time
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": Advisory.CREDENTIALS.value})
            yield

    def installation(self) -> str:
        """Return the id of this installation; the first call creates it."""
        identity = self.known_installation()
        if identity is not None:
            return identity
        with self.database.write() as connection:
            insert_rows(connection, installation, ("id", "identity"), [(1, str(uuid4()))])
            return str(connection.execute(select(installation.c.identity)).scalar_one())

    def known_installation(self) -> str | None:
        """Return the id of this installation, if it has one yet."""
        with self.database.read() as connection:
            identity = connection.execute(select(installation.c.identity)).scalar_one_or_none()
        return None if identity is None else str(identity)

    def get(self, machine: Machine) -> Credential | None:
        """Return a machine's credentials, if any were issued."""
        with self.database.read() as connection:
            return _find(connection, machine)

    def all(self) -> list[Credential]:
        """Return all credentials, revoked ones too."""
        with self.database.read() as connection:
            return [_credential(row) for row in connection.execute(_ROWS.order_by(credentials.c.username))]

    def issue_if_absent(self, machine: Machine, *, again: bool, at: datetime, who: str) -> Credential | None:
        """Issue credentials to a machine that has none; of concurrent callers one gets them, the others None.

        With ``again``, revoked credentials are issued again under the same name.
        """
        with self.database.write() as connection:
            if not self._insert(connection, machine, at):
                known = _locked(connection, machine)
                if not again or known.revoked_us is None:
                    return None
                self._renew(connection, machine, known.generation + 1, at)
            record(connection, at=at, who=who, action="issue_credentials", subject=str(machine.id), reason=None)
            return _find(connection, machine)

    def rotate(self, machine: Machine, *, at: datetime, who: str) -> Credential:
        """Issue new credentials, whatever there was before."""
        with self.database.write() as connection:
            if not self._insert(connection, machine, at):
                known = _locked(connection, machine)
                self._renew(connection, machine, known.generation + 1, at)
            record(connection, at=at, who=who, action="rotate_credentials", subject=str(machine.id), reason=None)
            issued = _find(connection, machine)
        assert issued is not None  # noqa: S101 - it was written above
        return issued

    def revoke(self, machine: Machine, *, at: datetime, who: str, reason: str | None) -> Credential | None:
        """Revoke a machine's credentials; None if it has none."""
        with self.database.write() as connection:
            if not revoke_within(connection, machine, at=at, who=who, reason=reason):
                return None
            return _find(connection, machine)

    def mark_outdated(self, machine: Machine, *, at: datetime) -> None:
        """Mark the last password as outdated; the machine is locked out until it gets a new one."""
        with self.database.write() as connection:
            _mark_outdated(connection, credentials.c.machine_id == machine.row_id, at)

    def disown_unconfirmed(self, *, at: datetime) -> None:
        """Mark passwords as outdated whose issue was interrupted: no one may have received them.

        Only inside ``exclusive``: another process may be about to confirm what it has issued.
        """
        with self.database.write() as connection:
            _mark_outdated(connection, credentials.c.unconfirmed_us.is_not(None), at)

    def apply(
        self,
        *,
        matching: Iterable[MachineId],
        locked_out: Iterable[MachineId],
        newer: Mapping[MachineId, int],
        at: datetime,
    ) -> None:
        """Store the state of the broker: machines that match, are locked out, or have a newer password."""
        with self.database.write() as connection:
            for machine, generation in newer.items():
                behind = (credentials.c.username == agent_name(machine), credentials.c.generation < generation)
                connection.execute(update(credentials).where(*behind).values(generation=generation))
            for machine in matching:
                marked = (
                    credentials.c.username == agent_name(machine),
                    or_(credentials.c.locked_out_us.is_not(None), credentials.c.unconfirmed_us.is_not(None)),
                )
                clear = {"locked_out_us": None, "unconfirmed_us": None}
                connection.execute(update(credentials).where(*marked).values(**clear))
            for machine in locked_out:
                unmarked = (
                    credentials.c.username == agent_name(machine),
                    credentials.c.locked_out_us.is_(None),
                    credentials.c.revoked_us.is_(None),
                )
                connection.execute(update(credentials).where(*unmarked).values(locked_out_us=to_us(at)))

    def _insert(self, connection: Connection, machine: Machine, at: datetime) -> bool:
        name = agent_name(machine.id)
        row = (machine.row_id, name, name, 1, to_us(at), to_us(at))
        return insert_rows(connection, credentials, _COLUMNS, [row]) > 0

    def _renew(self, connection: Connection, machine: Machine, generation: int, at: datetime) -> None:
        values = {
            "generation": generation,
            "rotated_us": to_us(at),
            "revoked_us": None,
            "locked_out_us": None,
            "unconfirmed_us": to_us(at),
        }
        connection.execute(update(credentials).where(credentials.c.machine_id == machine.row_id).values(**values))


def revoke_within(connection: Connection, machine: Machine, *, at: datetime, who: str, reason: str | None) -> bool:
    """Revoke in the transaction of the caller; return whether there was anything to revoke."""
    held = (credentials.c.machine_id == machine.row_id, credentials.c.revoked_us.is_(None))
    values = {"revoked_us": to_us(at), "locked_out_us": None, "unconfirmed_us": None}
    if not connection.execute(update(credentials).where(*held).values(**values)).rowcount:
        return False
    record(connection, at=at, who=who, action="revoke_credentials", subject=str(machine.id), reason=reason)
    return True


def _mark_outdated(connection: Connection, which: ColumnElement[bool], at: datetime) -> None:
    values = {"generation": credentials.c.generation + 1, "locked_out_us": to_us(at), "unconfirmed_us": None}
    connection.execute(update(credentials).where(which).values(**values))


def _find(connection: Connection, machine: Machine) -> Credential | None:
    row = connection.execute(_ROWS.where(credentials.c.machine_id == machine.row_id)).one_or_none()
    return _credential(row) if row else None


def _locked(connection: Connection, machine: Machine) -> Row[Any]:
    query = select(credentials).where(credentials.c.machine_id == machine.row_id).with_for_update()
    return connection.execute(query).one()


def _credential(row: Row[Any]) -> Credential:
    return Credential(
        machine=MachineId(row.site, row.machine),
        generation=row.generation,
        issued_at=from_us(row.issued_us),
        rotated_at=_moment(row.rotated_us),
        revoked_at=_moment(row.revoked_us),
        locked_out_at=_moment(row.locked_out_us),
    )


def _moment(us: int | None) -> datetime | None:
    return None if us is None else from_us(us)
