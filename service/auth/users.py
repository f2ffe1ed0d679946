"""Manage users and API keys; each admin only within their own sites."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from service.auth.authenticator import Authenticator
from service.auth.models import ApiKey, IssuedApiKey, User, UserUpdate
from service.auth.password import PasswordHasher, generate_temporary, validate
from service.auth.store import ApiKeyStore, UserStore, no_key, no_user
from service.auth.tokens import KEY, digest, new_token
from service.errors import Forbidden, InputRejected
from service.http.principal import Principal, Sites, is_subset
from wire.enums import Role

FIRST = "admin"


@dataclass(frozen=True)
class UserService:
    """Adds, changes and removes users and API keys; ``reset_throttle`` clears the login throttle of a user."""

    users: UserStore
    keys: ApiKeyStore
    hasher: PasswordHasher
    authenticator: Authenticator
    wall: Callable[[], datetime]
    random: Callable[[int], bytes] = secrets.token_bytes
    choose: Callable[[str], str] = secrets.choice
    reset_throttle: Callable[[str], None] = lambda _name: None

    def first_admin(self) -> str | None:
        """Add the first user and return the temporary password; None if there is any user."""
        if self.users.all():  # before anything is hashed: that takes longer than most of a start
            return None
        password = generate_temporary(self.choose)
        user = self._new(FIRST, Role.ADMIN, None, password, must_change=True)
        return password if self.users.add_first(user, who="service") else None

    def reset_demo_admin(self, name: str) -> str:
        """Give the demo's admin a new password that need not be changed, and return it."""
        password, now = generate_temporary(self.choose), self.wall()
        user = self.users.find(name)
        if user is None:
            self.users.add(self._new(name, Role.ADMIN, None, password, must_change=False), who="demo")
        else:
            self.users.set_password(user, self.hasher.hash(password), must_change=False, at=now, who="demo")
        self.authenticator.invalidate()
        return password

    def all_users(self, by: Principal) -> list[User]:
        """Return the users whose sites are all among the principal's, by name."""
        return [user for user in self.users.all() if is_subset(user.sites, by.sites)]

    def add_user(
        self, name: str, role: Role, sites: Sites, *, password: str | None, by: Principal
    ) -> tuple[User, str | None]:
        """Add a user; without a password a temporary one is generated and returned too."""
        _require_sites(sites, by)
        temporary = generate_temporary(self.choose) if password is None else None
        normalized = temporary or validate(password or "", name=name)
        user = self._new(name, role, sites, normalized, must_change=temporary is not None)
        return self.users.add(user, who=by.name), temporary

    def change_user(self, name: str, change: UserUpdate, *, by: Principal) -> User:
        """Change a user's role or sites, at once."""
        user = self._user(name, by)
        sites = change.sites if change.change_sites else user.sites
        _require_sites(sites, by)
        changed = self.users.change(user, role=change.role or user.role, sites=sites, at=self.wall(), who=by.name)
        self.authenticator.invalidate()
        return changed

    def reset_password(self, name: str, *, by: Principal) -> str:
        """Give a user a temporary password, return it, and end their sessions."""
        user = self._user(name, by)
        temporary = generate_temporary(self.choose)
        hashed = self.hasher.hash(temporary)
        self.users.set_password(user, hashed, must_change=True, at=self.wall(), who=by.name)
        self.authenticator.invalidate()
        self.reset_throttle(user.name)
        return temporary

    def remove_user(self, name: str, *, by: Principal) -> None:
        """Remove a user and end their sessions, at once."""
        self.users.remove(self._user(name, by), at=self.wall(), who=by.name)
        self.authenticator.invalidate()

    def all_keys(self, by: Principal) -> list[ApiKey]:
        """Return the API keys whose sites are all among the principal's, oldest first."""
        return [key for key in self.keys.all() if is_subset(key.sites, by.sites)]

    def add_key(
        self, name: str, role: Role, sites: Sites, *, ttl: timedelta | None, by: Principal
    ) -> IssuedApiKey:
        """Create an API key."""
        _require_sites(sites, by)
        now, token = self.wall(), new_token(KEY, self.random)
        key = ApiKey(
            id=0,
            name=name,
            prefix=token.prefix,
            digest=digest(token.secret),
            role=role,
            sites=sites,
            created_at=now,
            created_by=by.name,
            expires_at=None if ttl is None else now + ttl,
        )
        return IssuedApiKey(self.keys.add(key), str(token))

    def revoke_key(self, number: int, *, by: Principal, reason: str | None) -> None:
        """Revoke an API key, at once."""
        key = self.keys.get(number)
        if not is_subset(key.sites, by.sites):
            raise no_key(number)
        self.keys.remove(key, at=self.wall(), who=by.name, reason=reason)
        self.authenticator.invalidate()

    def _new(self, name: str, role: Role, sites: Sites, password: str, *, must_change: bool) -> User:
        hashed = self.hasher.hash(password)
        return User(0, name, role, sites, hashed, must_change=must_change, created_at=self.wall())

    def _user(self, name: str, by: Principal) -> User:
        user = self.users.get(name)
        if not is_subset(user.sites, by.sites):
            raise no_user(name)
        return user


def _require_sites(sites: Sites, by: Principal) -> None:
    if sites is not None and not sites:
        raise InputRejected("Name at least one site, or none at all for every site.", pointer="body/sites")
    if not is_subset(sites, by.sites):
        raise Forbidden(f"You can only assign your own sites: {', '.join(sorted(by.sites or ()))}.")
