"""Users, their sessions, and API keys."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from service.http.principal import Principal, Sites
from wire.enums import PrincipalKind, Role
from wire.rest.auth import ApiKeyView, UserView


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
    last_login_at: datetime | None = None

    def view(self) -> UserView:
        return UserView(
            name=self.name,
            role=self.role,
            sites=None if self.sites is None else sorted(self.sites),
            must_change=self.must_change,
            created_at=self.created_at,
            last_login_at=self.last_login_at,
        )


class UserUpdate(NamedTuple):
    """A change of a user; ``sites`` counts only with ``change_sites``."""

    role: Role | None = None
    sites: Sites = None
    change_sites: bool = False


@dataclass(frozen=True)
class ApiKey:
    """A program's key, of which only the SHA-256 is stored."""

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
        return Principal(f"key {self.name}", self.role, self.sites, PrincipalKind.KEY, self.id)

    def view(self) -> ApiKeyView:
        return ApiKeyView(
            id=self.id,
            name=self.name,
            prefix=self.prefix,
            role=self.role,
            sites=None if self.sites is None else sorted(self.sites),
            created_at=self.created_at,
            created_by=self.created_by,
            expires_at=self.expires_at,
            used_at=self.used_at,
        )


class IssuedApiKey(NamedTuple):
    """A new API key and its token, shown this once."""

    key: ApiKey
    token: str


@dataclass(frozen=True)
class Session:
    """A login that lasts until ``expires_at`` or until it has been idle for too long."""

    id: int
    prefix: str
    digest: str
    user: User
    created_at: datetime
    seen_at: datetime
    expires_at: datetime
    origin: str | None = None

    def principal(self) -> Principal:
        user = self.user
        return Principal(
            user.name, user.role, user.sites, PrincipalKind.SESSION, self.id, user.id, user.must_change
        )
