"""Users, the sessions in which they are signed in, and the keys of programs, as the store knows them."""

from dataclasses import dataclass
from datetime import datetime

from service.http.principal import Principal, Sites
from wire.enums import PrincipalKind, Role


@dataclass(frozen=True)
class User:
    """A person; ``password`` is a hash."""

    id: int
    name: str
    role: Role
    sites: Sites
    password: str
    must_change: bool
    created_at: datetime
    signed_in_at: datetime | None = None


@dataclass(frozen=True)
class ApiKey:
    """A program's key, of which only the sha256 is kept."""

    id: int
    name: str
    prefix: str
    digest: str
    role: Role
    sites: Sites
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None
    used_at: datetime | None = None

    def principal(self) -> Principal:
        """Return who asks with this key."""
        return Principal(f"key {self.name}", self.role, self.sites, PrincipalKind.KEY, self.id)


@dataclass(frozen=True)
class Session:
    """A person who is signed in until a moment, or until they have not asked for long."""

    id: int
    prefix: str
    digest: str
    user: User
    created_at: datetime
    seen_at: datetime
    expires_at: datetime
    origin: str | None = None

    def principal(self) -> Principal:
        """Return who asks in this session."""
        who = self.user
        return Principal(who.name, who.role, who.sites, PrincipalKind.SESSION, self.id, who.id, who.must_change)
