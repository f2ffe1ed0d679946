"""A name and a password become a session; wrong ones wait ever longer, and nobody learns which names exist."""

import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import BoundedSemaphore
from typing import NamedTuple

from service.auth.authenticator import Authenticator
from service.auth.login_throttle import OF_ONE, AttemptThrottle, LoginAttempt, LoginThrottle
from service.auth.models import Session, User
from service.auth.password import normalize, validate
from service.auth.password_hash import PasswordHasher
from service.auth.store import SessionStore, UserStore
from service.auth.tokens import SESSION, new_token
from service.errors import Conflict, InputRejected, NotSignedIn, TooMany
from service.http.principal import Principal
from wire.enums import PrincipalKind

log = logging.getLogger(__name__)
_AT_ONCE = 4  # passwords judged at a time: each takes a core and 32 MB


class LoginResult(NamedTuple):
    """A session that has just begun, and its token, shown this once."""

    session: Session
    token: str


@dataclass
class LoginService:
    """The flow and its ports."""

    users: UserStore
    sessions: SessionStore
    hasher: PasswordHasher
    access: Authenticator
    wall: Callable[[], datetime]
    lasts: timedelta
    monotonic: Callable[[], float] = time.monotonic
    random: Callable[[int], bytes] = secrets.token_bytes
    throttle: LoginThrottle = field(init=False)
    changes: AttemptThrottle = field(init=False)  # tries to change a password, by session
    _doors: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(_AT_ONCE))

    def __post_init__(self) -> None:
        self.throttle = LoginThrottle(self.monotonic)
        self.changes = AttemptThrottle(OF_ONE, self.monotonic)

    def login(self, name: str, password: str, *, origin: str | None) -> LoginResult:
        """Begin a session, or raise: the same, after the same work, for a wrong password and an unknown name."""
        address = origin or "?"
        user = self._judged(name, password, self.throttle.attempt(name, address), address)
        self.throttle.remember_address(name, address)
        now = self.wall()
        if self.hasher.is_outdated(user.password):
            self.users.rehash(user, self.hasher.hash(normalize(password)))
        token = new_token(SESSION, self.random)
        session = self.sessions.begin(user, token, at=now, expires=now + self.lasts, origin=origin)
        self.access.remember_validity(str(token), is_good=True)
        return LoginResult(session, str(token))

    def logout(self, principal: Principal) -> None:
        """End the session of whoever asks."""
        if principal.kind is not PrincipalKind.SESSION or principal.id is None:
            raise Conflict("You ask with a key, not in a session; there is nothing to end.")
        self.sessions.end(principal.id, at=self.wall(), who=principal.name)
        self.access.invalidate()

    def change_password(self, principal: Principal, old: str, new: str, *, origin: str | None) -> None:
        """Give whoever asks another password; their other sessions end."""
        if principal.user is None:
            raise Conflict("You ask with a key, and a key has no password.")
        # Counted by session, so that nobody who only knows the name can keep its owner from another password.
        user = self._judged(principal.name, old, LoginAttempt((self.changes, principal.id)), origin or "?")
        ready = validate(new, name=user.name)
        if self.hasher.verify(user.password, ready):
            raise InputRejected("The new password is the old one; choose another.", pointer="body/new")
        hashed = self.hasher.hash(ready)
        self.users.set_password(user, hashed, must_change=False, at=self.wall(), who=user.name, keep=principal.id)
        self.access.invalidate()

    def _judged(self, name: str, password: str, attempt: LoginAttempt, address: str) -> User:
        """Return the user of this name if the password is theirs."""
        _require_no_wait(attempt.wait)
        if not self._doors.acquire(blocking=False):  # before it is counted, because nobody judges this one
            raise TooMany("Too many people sign in at this moment; try again in a second.", wait=1)
        try:
            _require_no_wait(attempt.begin())
            user = self._found(name, password, attempt)
        finally:
            self._doors.release()
        if user is None:
            log.warning("a wrong name or password from %s", address)
            raise NotSignedIn("Incorrect user name or password.")
        attempt.succeeded()
        return user

    def _found(self, name: str, password: str, attempt: LoginAttempt) -> User | None:
        """Return whose name and password these are; a try that cannot be judged is taken back."""
        try:
            user = self.users.find(name)
            right = self.hasher.verify(user.password if user else None, normalize(password))
        except Exception:
            attempt.cancel()
            raise
        return user if right else None


def _require_no_wait(wait: float) -> None:
    if wait > 0:
        raise TooMany("There were too many wrong passwords; wait before the next try.", wait=wait)
