"""Users, sessions and API keys; every change is written to the audit log in the same transaction."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from service.auth.audit_store import record
from service.auth.models import ApiKey, Session, User
from service.auth.tokens import Token, digest
from service.database.engine import Database
from service.database.tables import api_keys, sessions, users
from service.errors import Conflict, NotFound
from service.http.principal import Sites
from wire.enums import Role
from wire.timestamps import from_us, to_us

_SESSIONS = select(
    sessions.c.id.label("session_id"),
    sessions.c.prefix,
    sessions.c.digest,
    sessions.c.created_us.label("begun_us"),
    sessions.c.last_seen_us,
    sessions.c.expires_us,
    sessions.c.client_ip,
    users,
).join_from(sessions, users)


@dataclass(frozen=True)
class UserStore:
    """Reads and writes users."""

    database: Database

    def all(self) -> list[User]:
        with self.database.read() as connection:
            return [_user(row) for row in connection.execute(select(users).order_by(users.c.name))]

    def find(self, name: str) -> User | None:
        with self.database.read() as connection:
            return _find(connection, name)

    def get(self, name: str) -> User:
        """Return a user, or raise :class:`NotFound`."""
        user = self.find(name)
        if user is None:
            raise no_user(name)
        return user

    def add(self, user: User, *, who: str) -> User:
        """Add a user; a name in use is a :class:`Conflict`."""
        row = {
            "name": user.name,
            "role": user.role.value,
            "sites": _encode_sites(user.sites),
            "password": user.password,
            "must_change": user.must_change,
            "created_us": to_us(user.created_at),
        }
        with self.database.write() as connection:
            if _find(connection, user.name) is not None:
                raise _taken(user.name)
            try:
                connection.execute(insert(users).values(**row))
            except IntegrityError:  # another process has just added it
                raise _taken(user.name) from None
            reason = f"{user.role.value} of {_site_names(user.sites)}"
            _audit(connection, user.created_at, who, "add user", f"user {user.name}", reason)
        return self.get(user.name)

    def add_first(self, user: User, *, who: str) -> bool:
        """Add the first user; False if there is any."""
        with self.database.write() as connection:
            if connection.execute(select(func.count()).select_from(users)).scalar_one():
                return False
        try:
            self.add(user, who=who)
        except Conflict:
            return False
        return True

    def change(self, user: User, *, role: Role, sites: Sites, at: datetime, who: str) -> User:
        """Change a user's role and sites; an admin of all sites must remain."""
        with self.database.write() as connection:
            values = {"role": role.value, "sites": _encode_sites(sites)}
            with _keep_an_admin(connection):
                connection.execute(update(users).where(users.c.id == user.id).values(**values))
            before = f"{user.role.value} of {_site_names(user.sites)}"
            reason = f"{role.value} of {_site_names(sites)}, was {before}"
            _audit(connection, at, who, "change user", f"user {user.name}", reason)
        return self.get(user.name)

    def set_password(
        self, user: User, password: str, *, must_change: bool, at: datetime, who: str, keep: int | None = None
    ) -> None:
        """Change a user's password hash and end all their sessions but ``keep``."""
        with self.database.write() as connection:
            values = {"password": password, "must_change": must_change}
            connection.execute(update(users).where(users.c.id == user.id).values(**values))
            others = (sessions.c.user_id == user.id, sessions.c.id != (keep or 0))
            connection.execute(delete(sessions).where(*others))
            action = "give one-time password" if must_change else "change password"
            _audit(connection, at, who, action, f"user {user.name}", None)

    def rehash(self, user: User, password: str) -> None:
        """Store the same password with the current hash cost; not audited."""
        unchanged = (users.c.id == user.id, users.c.password == user.password)
        with self.database.write() as connection:
            connection.execute(update(users).where(*unchanged).values(password=password))

    def remove(self, user: User, *, at: datetime, who: str) -> None:
        """Remove a user and their sessions; an admin of all sites must remain."""
        with self.database.write() as connection:
            connection.execute(delete(sessions).where(sessions.c.user_id == user.id))
            with _keep_an_admin(connection):
                connection.execute(delete(users).where(users.c.id == user.id))
            _audit(connection, at, who, "remove user", f"user {user.name}", None)


@dataclass(frozen=True)
class SessionStore:
    """Reads and writes sessions."""

    database: Database

    def begin(self, user: User, token: Token, *, at: datetime, expires: datetime, origin: str | None) -> Session:
        """Add a session and delete expired ones."""
        row = {
            "prefix": token.prefix,
            "digest": digest(token.secret),
            "user_id": user.id,
            "created_us": to_us(at),
            "last_seen_us": to_us(at),
            "expires_us": to_us(expires),
            "client_ip": origin,
        }
        with self.database.write() as connection:
            connection.execute(delete(sessions).where(sessions.c.expires_us <= to_us(at)))
            connection.execute(insert(sessions).values(**row))
            connection.execute(update(users).where(users.c.id == user.id).values(last_login_us=to_us(at)))
            _audit(connection, at, user.name, "sign in", f"user {user.name}", None)
            session = _session(connection, token.prefix)
        if session is None:
            raise NotFound("The session has just been ended; log in again.")
        return session

    def find(self, prefix: str) -> Session | None:
        """Return a session by its token's prefix, expired or not."""
        with self.database.read() as connection:
            return _session(connection, prefix)

    def touch(self, session: int, *, at: datetime) -> None:
        """Record that a session was used."""
        with self.database.write() as connection:
            connection.execute(update(sessions).where(sessions.c.id == session).values(last_seen_us=to_us(at)))

    def end(self, session: int, *, at: datetime, who: str) -> None:
        with self.database.write() as connection:
            if connection.execute(delete(sessions).where(sessions.c.id == session)).rowcount:
                _audit(connection, at, who, "sign out", f"user {who}", None)


@dataclass(frozen=True)
class ApiKeyStore:
    """Reads and writes API keys."""

    database: Database

    def all(self) -> list[ApiKey]:
        """Return all keys, oldest first."""
        with self.database.read() as connection:
            return [_key(row) for row in connection.execute(select(api_keys).order_by(api_keys.c.id))]

    def get(self, number: int) -> ApiKey:
        """Return a key, or raise :class:`NotFound`."""
        key = self._find(select(api_keys).where(api_keys.c.id == number))
        if key is None:
            raise no_key(number)
        return key

    def find(self, prefix: str) -> ApiKey | None:
        """Return a key by its token's prefix, expired or not."""
        return self._find(select(api_keys).where(api_keys.c.prefix == prefix))

    def add(self, key: ApiKey) -> ApiKey:
        """Add a key; a name in use is a :class:`Conflict`."""
        row = {
            "name": key.name,
            "prefix": key.prefix,
            "digest": key.digest,
            "role": key.role.value,
            "sites": _encode_sites(key.sites),
            "created_us": to_us(key.created_at),
            "created_by": key.created_by,
            "expires_us": None if key.expires_at is None else to_us(key.expires_at),
        }
        taken = Conflict(f"There is already a key {key.name!r}; choose another name, or revoke that one first.")
        with self.database.write() as connection:
            if connection.execute(select(api_keys.c.id).where(api_keys.c.name == key.name)).first():
                raise taken
            try:
                connection.execute(insert(api_keys).values(**row))
            except IntegrityError:
                raise taken from None
            reason = f"{key.role.value} of {_site_names(key.sites)}"
            _audit(connection, key.created_at, key.created_by, "add key", f"key {key.name}", reason)
        added = self.find(key.prefix)
        if added is None:
            raise NotFound(f"The key {key.name!r} has just been revoked.")
        return added

    def touch(self, key: int, *, at: datetime) -> None:
        """Record that a key was used."""
        with self.database.write() as connection:
            connection.execute(update(api_keys).where(api_keys.c.id == key).values(last_used_us=to_us(at)))

    def remove(self, key: ApiKey, *, at: datetime, who: str, reason: str | None) -> None:
        with self.database.write() as connection:
            connection.execute(delete(api_keys).where(api_keys.c.id == key.id))
            _audit(connection, at, who, "revoke key", f"key {key.name}", reason)

    def _find(self, statement: Select[Any]) -> ApiKey | None:
        with self.database.read() as connection:
            row = connection.execute(statement).one_or_none()
        return _key(row) if row else None


def no_user(name: str) -> NotFound:
    """Return the error for an unknown user."""
    return NotFound(f"There is no user {name}.")


def no_key(number: int) -> NotFound:
    """Return the error for an unknown key."""
    return NotFound(f"There is no key {number}.")


def _taken(name: str) -> Conflict:
    return Conflict(f"There is already a user {name}; choose another name.")


def _find(connection: Connection, name: str) -> User | None:
    row = connection.execute(select(users).where(users.c.name == name)).one_or_none()
    return _user(row) if row else None


def _session(connection: Connection, prefix: str) -> Session | None:
    row = connection.execute(_SESSIONS.where(sessions.c.prefix == prefix)).one_or_none()
    if row is None:
        return None
    return Session(
        id=row.session_id,
        prefix=row.prefix,
        digest=row.digest,
        user=_user(row),
        created_at=from_us(row.begun_us),
        seen_at=from_us(row.last_seen_us),
        expires_at=from_us(row.expires_us),
        origin=row.client_ip,
    )


@contextmanager
def _keep_an_admin(connection: Connection) -> Iterator[None]:
    """Raise, which rolls back, if a change leaves no admin of all sites; checked in the same transaction."""
    admins = select(users.c.id).where(users.c.role == Role.ADMIN.value, users.c.sites.is_(None)).with_for_update()
    before = connection.execute(admins).first()
    yield
    if before and not connection.execute(admins).first():
        raise Conflict("There must remain an admin of all sites; add another first.")


def _audit(connection: Connection, at: datetime, who: str, action: str, subject: str, reason: str | None) -> None:
    record(connection, at=at, who=who, action=action, subject=subject, reason=reason)


def _encode_sites(sites: Sites) -> str | None:
    return None if sites is None else json.dumps(sorted(sites))


def _decode_sites(sites: str | None) -> Sites:
    return None if sites is None else frozenset(json.loads(sites))


def _site_names(sites: Sites) -> str:
    return "every site" if sites is None else ", ".join(sorted(sites))


def _user(row: Row[Any]) -> User:
    return User(
        id=row.id,
        name=row.name,
        role=Role(row.role),
        sites=_decode_sites(row.sites),
        password=row.password,
        must_change=row.must_change,
        created_at=from_us(row.created_us),
        last_login_at=from_us(row.last_login_us) if row.last_login_us is not None else None,
    )


def _key(row: Row[Any]) -> ApiKey:
    return ApiKey(
        id=row.id,
        name=row.name,
        prefix=row.prefix,
        digest=row.digest,
        role=Role(row.role),
        sites=_decode_sites(row.sites),
        created_at=from_us(row.created_us),
        created_by=row.created_by,
        expires_at=from_us(row.expires_us) if row.expires_us is not None else None,
        used_at=from_us(row.last_used_us) if row.last_used_us is not None else None,
    )
