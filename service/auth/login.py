"""Log in, log out and change one's password, with throttling of wrong passwords."""

import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import BoundedSemaphore
from typing import NamedTuple

from service.auth.authenticator import Authenticator
from service.auth.login_throttle import PER_USER_AND_IP, AttemptThrottle, LoginAttempt, LoginThrottle
from service.auth.models import Session, User
from service.auth.password import PasswordHasher, normalize, validate
from service.auth.store import SessionStore, UserStore
from service.auth.tokens import SESSION, new_token
from service.errors import Conflict, InputRejected, NotSignedIn, TooMany
from service.http.principal import Principal
from wire.enums import PrincipalKind

log = logging.getLogger(__name__)
_MAX_CONCURRENT = 4  # password checks; each takes a core and 32 MB


class LoginResult(NamedTuple):
    """A new session and its token, shown this once."""

    session: Session
    token: str


@dataclass
class LoginService:
    """Creates and ends sessions."""

    users: UserStore
    sessions: SessionStore
    hasher: PasswordHasher
    authenticator: Authenticator
    wall: Callable[[], datetime]
    ttl: timedelta
    monotonic: Callable[[], float] = time.monotonic
    random: Callable[[int], bytes] = secrets.token_bytes
    throttle: LoginThrottle = field(init=False)
    changes: AttemptThrottle = field(init=False)  # password changes, per session
    _slots: BoundedSemaphore = field(init=False, default_factory=lambda: BoundedSemaphore(_MAX_CONCURRENT))

    def __post_init__(self) -> None:
        self.throttle = LoginThrottle(self.monotonic)
        self.changes = AttemptThrottle(PER_USER_AND_IP, self.monotonic)

    def login(self, name: str, password: str, *, origin: str | None) -> LoginResult:
        """Create a session; an unknown name and a wrong password give the same error after the same work."""
        address = origin or "?"
        user = self._verified_user(name, password, self.throttle.attempt(name, address), address)
        self.throttle.remember_address(name, address)
        now = self.wall()
        if self.hasher.is_outdated(user.password):
            self.users.rehash(user, self.hasher.hash(normalize(password)))
        token = new_token(SESSION, self.random)
        session = self.sessions.begin(user, token, at=now, expires=now + self.ttl, origin=origin)
        self.authenticator.remember_validity(str(token), is_valid=True)
        return LoginResult(session, str(token))

    def logout(self, principal: Principal) -> None:
        """End the session of a principal."""
        if principal.kind is not PrincipalKind.SESSION or principal.id is None:
            raise Conflict("This request uses an API key, not a session; there is nothing to end.")
        self.sessions.end(principal.id, at=self.wall(), who=principal.name)
        self.authenticator.invalidate()

    def change_password(self, principal: Principal, old: str, new: str, *, origin: str | None) -> None:
        """Change the principal's own password and end their other sessions."""
        if principal.user is None:
            raise Conflict("This request uses an API key, which has no password.")
        # Counted per session: otherwise anyone who knows the name could block its owner.
        attempt = LoginAttempt((self.changes, principal.id))
        user = self._verified_user(principal.name, old, attempt, origin or "?")
        normalized = validate(new, name=user.name)
        if self.hasher.verify(user.password, normalized):
            raise InputRejected("The new password is the old one; choose another.", pointer="body/new")
        hashed = self.hasher.hash(normalized)
        self.users.set_password(user, hashed, must_change=False, at=self.wall(), who=user.name, keep=principal.id)
        self.authenticator.invalidate()

    def _verified_user(self, name: str, password: str, attempt: LoginAttempt, address: str) -> User:
        _require_no_wait(attempt.wait)
        if not self._slots.acquire(blocking=False):  # before it is counted, because it is not checked
            raise TooMany("Too many logins at this moment; try again in a second.", wait=1)
        try:
            _require_no_wait(attempt.begin())
            try:
                user = self.users.find(name)
                is_right = self.hasher.verify(user.password if user else None, normalize(password))
            except Exception:
                attempt.cancel()
                raise
        finally:
            self._slots.release()
        if user is None or not is_right:
            log.warning("wrong user name or password from %s", address)
            raise NotSignedIn("Incorrect user name or password.")
        attempt.succeeded()
        return user


def _require_no_wait(wait: float) -> None:
    if wait > 0:
        raise TooMany("Too many wrong passwords; wait before the next attempt.", wait=wait)
