"""Find the user or API key behind a token."""

import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock

from service.auth import tokens
from service.auth.store import ApiKeyStore, SessionStore
from service.auth.tokens import Token, digest, matches, read_token
from service.errors import Unavailable
from service.http.principal import Principal
from service.messaging.bus import ChangeBus, ChangesMissed, PermissionsChanged
from wire.enums import PrincipalKind, Role

_MAX_CACHED = 10_000  # tokens
_TOUCH_INTERVAL = timedelta(minutes=1)  # resolution of "last used"
LOCAL = Principal("local admin", Role.ADMIN, None, PrincipalKind.LOCAL)
PAGE = Principal("page", Role.VIEWER, None, PrincipalKind.SYSTEM)


@dataclass
class Authenticator:
    """Caches results for ``cache_ttl`` seconds; :meth:`invalidate` clears the caches of all processes.

    ``own`` are the tokens of this process: the local admin token and those of its pages.
    """

    sessions: SessionStore
    keys: ApiKeyStore
    wall: Callable[[], datetime]
    idle: timedelta
    own: dict[Token, Principal] = field(default_factory=dict)
    cache_ttl: float = 5.0
    monotonic: Callable[[], float] = time.monotonic
    bus: ChangeBus = field(default_factory=ChangeBus)
    _cache: "OrderedDict[str, tuple[float, Principal]]" = field(init=False, default_factory=OrderedDict)
    _recently_valid: "OrderedDict[str, None]" = field(init=False, default_factory=OrderedDict)
    _invalidations: int = field(init=False, default=0)
    _lock: Lock = field(init=False, default_factory=Lock)

    def __post_init__(self) -> None:
        self.bus.subscribe(PermissionsChanged, self._clear_cache)
        self.bus.subscribe(ChangesMissed, self._clear_cache)

    def cached(self, text: str) -> Principal | None:
        """Return the cached principal of a token, without a query."""
        with self._lock:
            entry = self._cache.get(digest(text))
            return entry[1] if entry and self.monotonic() - entry[0] < self.cache_ttl else None

    def was_recently_valid(self, text: str) -> bool:
        """Return whether a token is this process's own or was valid at its last lookup, without a query."""
        with self._lock:
            if digest(text) in self._recently_valid:
                return True
        token = read_token(text)
        return token is not None and self._own(token) is not None

    def authenticate(self, text: str) -> Principal | None:
        """Return the principal of a token, or None if the token is unknown, expired or revoked."""
        cached = self.cached(text)
        if cached is not None:
            return cached
        token = read_token(text)
        if token is None:
            return None
        invalidations = self._invalidations
        principal = self._own(token) or self._stored(token)
        self.remember_validity(text, is_valid=principal is not None)
        if principal is not None:
            self._store_in_cache(digest(text), principal, invalidations)
        return principal

    def remember_validity(self, text: str, *, is_valid: bool) -> None:
        """Remember that a token is valid, for longer than its principal; it is not charged as anonymous then."""
        key = digest(text)
        with self._lock:
            self._recently_valid.pop(key, None)
            if is_valid:
                self._recently_valid[key] = None
            while len(self._recently_valid) > _MAX_CACHED:
                self._recently_valid.popitem(last=False)

    def invalidate(self) -> None:
        """Check every token again, in this process and in the others."""
        self.bus.publish(PermissionsChanged())

    def _clear_cache(self, _event: PermissionsChanged | ChangesMissed) -> None:
        with self._lock:
            self._invalidations += 1
            self._cache.clear()

    def _store_in_cache(self, key: str, principal: Principal, invalidations: int) -> None:
        with self._lock:
            if invalidations != self._invalidations:
                return  # read before permissions changed
            self._cache[key] = (self.monotonic(), principal)
            self._cache.move_to_end(key)
            while len(self._cache) > _MAX_CACHED:
                self._cache.popitem(last=False)

    def _own(self, token: Token) -> Principal | None:
        principal = None
        for own, own_principal in self.own.items():  # all of them, in constant time
            if matches(token.secret, digest(own.secret)) and own.kind == token.kind:
                principal = own_principal
        return principal

    def _stored(self, token: Token) -> Principal | None:
        now = self.wall()
        if token.kind == tokens.KEY:
            key = self.keys.find(token.prefix)
            # Compared even if there is none, so that a known prefix takes no longer than an unknown one.
            is_right = matches(token.secret, key.digest if key else digest(""))
            if key is None or not is_right or (key.expires_at is not None and key.expires_at <= now):
                return None
            if key.used_at is None or now - key.used_at >= _TOUCH_INTERVAL:
                with suppress(Unavailable):  # a failed update of "last used" is no reason to refuse the key
                    self.keys.touch(key.id, at=now)
            return key.principal()
        if token.kind == tokens.SESSION:
            session = self.sessions.find(token.prefix)
            is_right = matches(token.secret, session.digest if session else digest(""))
            if session is None or not is_right or min(session.expires_at, session.seen_at + self.idle) <= now:
                return None
            if now - session.seen_at >= _TOUCH_INTERVAL:
                with suppress(Unavailable):
                    self.sessions.touch(session.id, at=now)
            return session.principal()
        return None
