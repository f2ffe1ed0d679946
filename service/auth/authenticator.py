"""Who is behind a token: a session, a key, the service's own folder, or nobody."""

import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock

from service.auth import tokens as secret
from service.auth.models import ApiKey, Session
from service.auth.store import ApiKeyStore, SessionStore
from service.auth.tokens import Token, digest, matches, read_token
from service.errors import Unavailable
from service.http.principal import Principal
from service.messaging.bus import ChangeBus, ChangesMissed, PermissionsChanged
from wire.enums import PrincipalKind, Role

_MOST_KEPT = 10_000  # tokens
_TOUCH_AFTER = timedelta(minutes=1)  # how exact "last used" is
LOCAL = Principal("local admin", Role.ADMIN, None, PrincipalKind.LOCAL)
PAGE = Principal("page", Role.VIEWER, None, PrincipalKind.SYSTEM)


@dataclass
class Authenticator:
    """Remembers for ``remember`` seconds what it found; a change is seen at once here, and soon elsewhere.

    ``own`` are the tokens of this process: of whoever reads its folder, and of its own pages.
    """

    sessions: SessionStore
    keys: ApiKeyStore
    wall: Callable[[], datetime]
    idle: timedelta
    own: dict[Token, Principal] = field(default_factory=dict)
    cache_ttl: float = 5.0
    monotonic: Callable[[], float] = time.monotonic
    bus: ChangeBus = field(default_factory=ChangeBus)
    _kept: "OrderedDict[str, tuple[float, Principal]]" = field(default_factory=OrderedDict)
    _familiar: "OrderedDict[str, None]" = field(default_factory=OrderedDict)
    _changes: int = 0
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.bus.subscribe(PermissionsChanged, self._clear_cache)
        self.bus.subscribe(ChangesMissed, self._clear_cache)

    def cached(self, text: str) -> Principal | None:
        """Return whom a token was found to be of lately; asks nobody and never blocks for long."""
        with self._lock:
            kept = self._kept.get(digest(text))
            return kept[1] if kept and self.monotonic() - kept[0] < self.cache_ttl else None

    def was_recently_valid(self, text: str) -> bool:
        """Say whether a token is this process's own, or was good when it was last looked up; asks nobody."""
        with self._lock:
            if digest(text) in self._familiar:
                return True
        token = read_token(text)
        return token is not None and self._own(token) is not None

    def authenticate(self, text: str) -> Principal | None:
        """Return whom a token is of, or None for one that is not known, or not any more."""
        known = self.cached(text)
        if known is not None:
            return known
        token = read_token(text)
        if token is None:
            return None
        changes = self._changes
        found = self._own(token) or self._found(token)
        self.remember_validity(text, is_good=found is not None)
        if found is not None:
            self._keep(digest(text), found, changes)
        return found

    def remember_validity(self, text: str, *, is_good: bool) -> None:
        """Remember that a token is good, for longer than whose it is: it is no stranger's when it comes again."""
        key = digest(text)
        with self._lock:
            self._familiar.pop(key, None)
            if is_good:
                self._familiar[key] = None
            while len(self._familiar) > _MOST_KEPT:
                self._familiar.popitem(last=False)

    def invalidate(self) -> None:
        """Check every token again, in this process and in the others."""
        self.bus.publish(PermissionsChanged())

    def _clear_cache(self, _event: PermissionsChanged | ChangesMissed) -> None:
        with self._lock:
            self._changes += 1
            self._kept.clear()

    def _keep(self, key: str, found: Principal, changes: int) -> None:
        with self._lock:
            if changes != self._changes:
                return  # it was found before somebody's rights changed
            self._kept[key] = (self.monotonic(), found)
            self._kept.move_to_end(key)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)

    def _own(self, token: Token) -> Principal | None:
        found = None
        for kept, principal in self.own.items():
            if matches(token.secret, digest(kept.secret)) and kept.kind == token.kind:
                found = principal
        return found

    def _found(self, token: Token) -> Principal | None:
        now = self.wall()
        if token.kind == secret.KEY:
            key = self.keys.find(token.prefix)
            # Compared even with nothing, so that a known beginning takes no longer than an unknown one.
            right = matches(token.secret, key.digest if key else digest(""))
            if key is None or not right or (key.expires_at is not None and key.expires_at <= now):
                return None
            self._touch_key(key, now)
            return key.principal()
        if token.kind == secret.SESSION:
            session = self.sessions.find(token.prefix)
            right = matches(token.secret, session.digest if session else digest(""))
            if session is None or not right or min(session.expires_at, session.seen_at + self.idle) <= now:
                return None
            self._touch_session(session, now)
            return session.principal()
        return None

    def _touch_key(self, key: ApiKey, now: datetime) -> None:
        if key.used_at is None or now - key.used_at >= _TOUCH_AFTER:
            with suppress(Unavailable):  # that it is used is worth knowing, and no reason to refuse it
                self.keys.touch(key.id, at=now)

    def _touch_session(self, session: Session, now: datetime) -> None:
        if now - session.seen_at >= _TOUCH_AFTER:
            with suppress(Unavailable):
                self.sessions.touch(session.id, at=now)
