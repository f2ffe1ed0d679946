"""Log in, log out and change one's password, with throttling of wrong passwords."""

import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import BoundedSemaphore, Lock
from typing import Any, NamedTuple

from service.auth.authenticator import Authenticator
from service.auth.models import Session, User
from service.auth.password import PasswordHasher, normalize, validate
from service.auth.store import SessionStore, UserStore
from service.auth.tokens import SESSION, new_token
from service.errors import Conflict, InputRejected, NotSignedIn, TooMany
from service.http.principal import Principal
from service.http.rate_limit import network_of
from wire.enums import PrincipalKind

_MAX_KEYS = 10_000  # the least recently used are dropped first


@dataclass(frozen=True)
class BackoffPolicy:
    """After ``free_attempts`` the wait doubles from one second up to ``max_wait_s``."""

    free_attempts: int
    max_wait_s: float = 900.0
    reset_after_s: float = 3600.0  # without an attempt


@dataclass
class AttemptThrottle:
    """Counts failed attempts per key: a name, an address, or both."""

    policy: BackoffPolicy
    clock: Callable[[], float]
    _attempts: "OrderedDict[Hashable, tuple[int, float]]" = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def wait(self, key: Hashable) -> float:
        """Return the seconds until the next attempt is allowed; zero if it is allowed now."""
        with self._lock:
            return self._wait(key, self.clock())

    def attempt(self, key: Hashable) -> float:
        """Count an attempt unless it must wait; return the wait in seconds.

        Counted before the password is checked, so that concurrent attempts are all counted.
        """
        now = self.clock()
        with self._lock:
            wait = self._wait(key, now)
            if wait <= 0:
                count, _ = self._recent_attempts(key, now)
                self._attempts[key] = (count + 1, now)
                self._attempts.move_to_end(key)
                while len(self._attempts) > _MAX_KEYS:
                    self._attempts.popitem(last=False)
            return wait

    def reset(self, key: Hashable) -> None:
        """Clear the attempts of a key after a success."""
        with self._lock:
            self._attempts.pop(key, None)

    def reset_where(self, applies: Callable[[Any], bool]) -> None:
        """Clear the attempts of all keys for which ``applies`` is true."""
        with self._lock:
            for key in [key for key in self._attempts if applies(key)]:
                del self._attempts[key]

    def refund(self, key: Hashable) -> None:
        """Uncount one attempt that succeeded or was not checked."""
        with self._lock:
            count, last = self._attempts.get(key, (0, 0.0))
            if count > 1:
                self._attempts[key] = (count - 1, last)
            else:
                self._attempts.pop(key, None)

    def _recent_attempts(self, key: Hashable, now: float) -> tuple[int, float]:
        count, last = self._attempts.get(key, (0, now))
        return (0, now) if now - last > self.policy.reset_after_s else (count, last)

    def _wait(self, key: Hashable, now: float) -> float:
        count, last = self._recent_attempts(key, now)
        excess = count - self.policy.free_attempts
        if excess < 0:
            return 0.0
        pause = min(2.0 ** min(excess, 60), self.policy.max_wait_s)
        return float(max(0.0, last + pause - now))


PER_USER_AND_IP, PER_IP = BackoffPolicy(free_attempts=5), BackoffPolicy(free_attempts=20)
# Anyone can try any name, so the limit per name must not lock out its owner: many free attempts, short waits.
PER_USER = BackoffPolicy(free_attempts=100, max_wait_s=60.0)
_MAX_ADDRESSES = 10_000  # names with an address; the least recently used are dropped first
Counter = tuple[AttemptThrottle, Hashable]


@dataclass(frozen=True)
class LoginAttempt:
    """One attempt and its counters: one of its own, and some shared with other users or addresses."""

    own: Counter
    shared: tuple[Counter, ...] = ()

    @property
    def wait(self) -> float:
        """The seconds it must wait; zero if it may begin."""
        return max(throttle.wait(key) for throttle, key in (self.own, *self.shared))

    def begin(self) -> float:
        """Count it unless it must wait; return the wait in seconds."""
        counters = (self.own, *self.shared)
        waits = [throttle.attempt(key) for throttle, key in counters]
        if max(waits) > 0:
            for (throttle, key), wait in zip(counters, waits, strict=True):
                if wait <= 0:  # counted there, but the attempt does not begin
                    throttle.refund(key)
        return max(waits)

    def cancel(self) -> None:
        """Uncount it, because the password was not checked."""
        for throttle, key in (self.own, *self.shared):
            throttle.refund(key)

    def succeeded(self) -> None:
        """Clear the own counter; uncount only this attempt in the shared ones."""
        self.own[0].reset(self.own[1])
        for throttle, key in self.shared:
            throttle.refund(key)


@dataclass
class LoginThrottle:
    """Counts per user and address, per address, and per user unless that user has logged in from the address."""

    clock: Callable[[], float]
    pairs: AttemptThrottle = field(init=False)
    addresses: AttemptThrottle = field(init=False)
    names: AttemptThrottle = field(init=False)
    _known_addresses: "OrderedDict[tuple[str, str], None]" = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.pairs = AttemptThrottle(PER_USER_AND_IP, self.clock)
        self.addresses = AttemptThrottle(PER_IP, self.clock)
        self.names = AttemptThrottle(PER_USER, self.clock)

    def attempt(self, name: str, address: str) -> LoginAttempt:
        """Return a login attempt that has not begun; an IPv6 address counts as its /64 network."""
        address = network_of(address)
        with self._lock:
            is_known = (name, address) in self._known_addresses
        by_address, by_name = (self.addresses, address), (self.names, name)
        return LoginAttempt((self.pairs, (name, address)), (by_address,) if is_known else (by_address, by_name))

    def remember_address(self, name: str, address: str) -> None:
        """Remember a successful login, so that guesses from elsewhere do not block the user at this address."""
        address = network_of(address)
        with self._lock:
            self._known_addresses[name, address] = None
            self._known_addresses.move_to_end((name, address))
            while len(self._known_addresses) > _MAX_ADDRESSES:
                self._known_addresses.popitem(last=False)

    def reset(self, name: str) -> None:
        """Clear all attempts of a user after their password was reset."""
        self.names.reset(name)
        self.pairs.reset_where(lambda pair: pair[0] == name)


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
