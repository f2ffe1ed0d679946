"""Credentials: which machines may come in at the broker, since when, and never with which password."""

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
    """One row a machine, however often its credentials are issued: its name at the broker never changes."""

    database: Database

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep every other process from changing broker and database meanwhile; on SQLite there is none."""
        if self.database.is_sqlite:
            yield
            return
        with self.database.write(no_timeout=True) as connection:  # a broker may take its time
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": Advisory.CREDENTIALS.value})
            yield

    def installation(self) -> str:
        """Return the identity of this installation, which the first to ask makes."""
        identity = self.known_installation()
        if identity is not None:
            return identity
        with self.database.write() as connection:
            insert_rows(connection, installation, ("id", "identity"), [(1, str(uuid4()))])
            return str(connection.execute(select(installation.c.identity)).scalar_one())

    def known_installation(self) -> str | None:
        """Return the identity of this installation, if it has one yet."""
        with self.database.read() as connection:
            identity = connection.execute(select(installation.c.identity)).scalar_one_or_none()
        return None if identity is None else str(identity)

    def get(self, machine: Machine) -> Credential | None:
        """Return a machine's credentials, if some were ever issued."""
        with self.database.read() as connection:
            return _of(connection, machine)

    def all(self) -> list[Credential]:
        """Return every machine's credentials, revoked ones too."""
        with self.database.read() as connection:
            return [_credential(row) for row in connection.execute(_ROWS.order_by(credentials.c.username))]

    def issue_if_absent(self, machine: Machine, *, again: bool, at: datetime, who: str) -> Credential | None:
        """Issue to a machine that has none; of any number that claim at once one gets them, the others None.

        With ``again``, one whose credentials were revoked gets new ones under its old name.
        """
        with self.database.write() as connection:
            if not self._insert(connection, machine, at):
                known = _locked(connection, machine)
                if not again or known.revoked_us is None:
                    return None
                self._renew(connection, machine, known.generation + 1, at)
            record(connection, at=at, who=who, action="issue_credentials", subject=str(machine.id), reason=None)
            return _of(connection, machine)

    def rotate(self, machine: Machine, *, at: datetime, who: str) -> Credential:
        """Issue anew, whatever there was before."""
        with self.database.write() as connection:
            if not self._insert(connection, machine, at):
                known = _locked(connection, machine)
                self._renew(connection, machine, known.generation + 1, at)
            record(connection, at=at, who=who, action="rotate_credentials", subject=str(machine.id), reason=None)
            issued = _of(connection, machine)
        assert issued is not None  # noqa: S101 - it was written above
        return issued

    def revoke(self, machine: Machine, *, at: datetime, who: str, reason: str | None) -> Credential | None:
        """Note that a machine may not come in any more; None if it has nothing to lose."""
        with self.database.write() as connection:
            if not revoke_within(connection, machine, at=at, who=who, reason=reason):
                return None
            return _of(connection, machine)

    def mark_outdated(self, machine: Machine, *, at: datetime) -> None:
        """Let what was issued last count as old already, and the machine as locked out until it gets new ones."""
        with self.database.write() as connection:
            _disown(connection, credentials.c.machine_id == machine.row_id, at)

    def disown_unconfirmed(self, *, at: datetime) -> None:
        """Do the same for whom a process was killed while it issued a password: nobody may have it.

        Only for whoever is ``alone``: another process may be about to confirm what it has issued.
        """
        with self.database.write() as connection:
            _disown(connection, credentials.c.unconfirmed_us.is_not(None), at)

    def apply(
        self,
        *,
        well: Iterable[MachineId],
        locked_out: Iterable[MachineId],
        newer: Mapping[MachineId, int],
        at: datetime,
    ) -> None:
        """Write down what the broker was found to do: let in, keep out, or hold a newer password."""
        with self.database.write() as connection:
            for machine, generation in newer.items():
                behind = (credentials.c.username == agent_name(machine), credentials.c.generation < generation)
                connection.execute(update(credentials).where(*behind).values(generation=generation))
            for machine in well:
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
    """Revoke inside the transaction of what is the reason for it; return whether there was anything to revoke."""
    held = (credentials.c.machine_id == machine.row_id, credentials.c.revoked_us.is_(None))
    values = {"revoked_us": to_us(at), "locked_out_us": None, "unconfirmed_us": None}
    if not connection.execute(update(credentials).where(*held).values(**values)).rowcount:
        return False
    record(connection, at=at, who=who, action="revoke_credentials", subject=str(machine.id), reason=reason)
    return True


def _disown(connection: Connection, which: ColumnElement[bool], at: datetime) -> None:
    values = {"generation": credentials.c.generation + 1, "locked_out_us": to_us(at), "unconfirmed_us": None}
    connection.execute(update(credentials).where(which).values(**values))


def _of(connection: Connection, machine: Machine) -> Credential | None:
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
