"""What admins do with people and programs: add, list, change, remove; each within their own sites."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from service.auth.authenticator import Authenticator
from service.auth.models import ApiKey, User
from service.auth.password import generate_temporary, validate
from service.auth.password_hash import PasswordHasher
from service.auth.store import ApiKeyStore, UserStore
from service.auth.tokens import KEY, digest, new_token
from service.errors import Forbidden, InputRejected, NotFound
from service.http.principal import Principal, Sites, is_subset
from wire.enums import Role

FIRST = "admin"


class IssuedApiKey(NamedTuple):
    """A key that was just made, and its token, shown this once."""

    key: ApiKey
    token: str


class UserUpdate(NamedTuple):
    """What of a user is to be another; ``sites`` are as they were unless ``moves``."""

    role: Role | None = None
    sites: Sites = None
    change_sites: bool = False


@dataclass(frozen=True)
class UserService:
    """The flow and its ports; whoever acts is named, and acts for no site but their own."""

    users: UserStore
    keys: ApiKeyStore
    hasher: PasswordHasher
    access: Authenticator
    wall: Callable[[], datetime]
    random: Callable[[int], bytes] = secrets.token_bytes
    choose: Callable[[str], str] = secrets.choice
    reset_throttle: Callable[[str], None] = lambda _name: (
        None
    )  # lets a name be tried at once that has another password

    def first_admin(self) -> str | None:
        """Make the first user of all and return the password to tell once; None if there is any user."""
        if self.users.all():  # before anything is hashed: that takes longer than most of a start
            return None
        password = generate_temporary(self.choose)
        user = self._new(FIRST, Role.ADMIN, None, password, must_change=True)
        return password if self.users.add_first(user, who="service") else None

    def reset_demo_admin(self, name: str) -> str:
        """Give an admin a new password that need not be changed, and return it: for a demo's own screen."""
        password, now = generate_temporary(self.choose), self.wall()
        known = self.users.find(name)
        if known is None:
            self.users.add(self._new(name, Role.ADMIN, None, password, must_change=False), who="demo")
        else:
            hashed = self.hasher.hash(password)
            self.users.set_password(known, hashed, must_change=False, at=now, who="demo")
        self.access.invalidate()
        return password

    def all_users(self, by: Principal) -> list[User]:
        """Return the users whose sites are all of the asker's, by name."""
        return [user for user in self.users.all() if is_subset(user.sites, by.sites)]

    def add_user(
        self, name: str, role: Role, sites: Sites, *, password: str | None, by: Principal
    ) -> tuple[User, str | None]:
        """Keep a new user; without a password they get one that is told once, which is returned beside them."""
        _require_sites(sites, by)
        told = generate_temporary(self.choose) if password is None else None
        ready = told or validate(password or "", name=name)
        made = self.users.add(self._new(name, role, sites, ready, must_change=told is not None), who=by.name)
        return made, told

    def change_user(self, name: str, change: UserUpdate, *, by: Principal) -> User:
        """Give a user another role or other sites, at once."""
        user = self._user(name, by)
        sites = change.sites if change.change_sites else user.sites
        _require_sites(sites, by)
        changed = self.users.change(user, role=change.role or user.role, sites=sites, at=self.wall(), who=by.name)
        self.access.invalidate()
        return changed

    def reset_password(self, name: str, *, by: Principal) -> str:
        """Give a user a password that is told once, and end their sessions."""
        user = self._user(name, by)
        told = generate_temporary(self.choose)
        self.users.set_password(user, self.hasher.hash(told), must_change=True, at=self.wall(), who=by.name)
        self.access.invalidate()
        self.reset_throttle(user.name)
        return told

    def remove_user(self, name: str, *, by: Principal) -> None:
        """Forget a user; they are signed out at once."""
        self.users.remove(self._user(name, by), at=self.wall(), who=by.name)
        self.access.invalidate()

    def all_keys(self, by: Principal) -> list[ApiKey]:
        """Return the keys whose sites are all of the asker's, oldest first."""
        return [key for key in self.keys.all() if is_subset(key.sites, by.sites)]

    def add_key(
        self, name: str, role: Role, sites: Sites, *, lasts: timedelta | None, by: Principal
    ) -> IssuedApiKey:
        """Make a key for a program."""
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
            expires_at=None if lasts is None else now + lasts,
        )
        return IssuedApiKey(self.keys.add(key), str(token))

    def revoke_key(self, number: int, *, by: Principal, reason: str | None) -> None:
        """Take a key back, at once."""
        key = self.keys.get(number)
        if not is_subset(key.sites, by.sites):
            raise NotFound(f"There is no key {number}.")
        self.keys.remove(key, at=self.wall(), who=by.name, reason=reason)
        self.access.invalidate()

    def _new(self, name: str, role: Role, sites: Sites, password: str, *, must_change: bool) -> User:
        hashed = self.hasher.hash(password)
        return User(0, name, role, sites, hashed, must_change=must_change, created_at=self.wall())

    def _user(self, name: str, by: Principal) -> User:
        user = self.users.get(name)
        if not is_subset(user.sites, by.sites):
            raise NotFound(f"There is no user {name}.")
        return user


def _require_sites(sites: Sites, by: Principal) -> None:
    if sites is not None and not sites:
        raise InputRejected("Name at least one site, or none at all for every site.", pointer="body/sites")
    if not is_subset(sites, by.sites):
        own = ", ".join(sorted(by.sites or ()))
        raise Forbidden(f"You can give others only sites that are yours: {own}.")
