"""Build the auth services, and manage the token of the local admin in the data folder."""

import contextlib
import os
import secrets
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from service.auth import tokens
from service.auth.authenticator import LOCAL, PAGE, Authenticator
from service.auth.login import LoginService
from service.auth.middleware import AuthConfig
from service.auth.password import PasswordHasher
from service.auth.store import ApiKeyStore, SessionStore, UserStore
from service.auth.tokens import Token, new_token
from service.auth.users import UserService
from service.database.engine import Database
from service.errors import InputRejected
from service.http.principal import Sites
from service.http.rate_limit import TokenBuckets
from service.settings import Settings
from wire.clock import PlantClock

_ANONYMOUS_SHARE = 0.1  # of the rate limit of authenticated requests


def _wall_now() -> datetime:
    return datetime.now(UTC)


@dataclass
class AuthServices:
    """Everything that decides who may do what; ``local`` is a token that lives as long as this process."""

    settings: Settings
    database: Database
    clock: PlantClock = field(default_factory=PlantClock)
    hasher: PasswordHasher = field(default_factory=PasswordHasher)
    local: Token = field(default_factory=lambda: new_token(tokens.LOCAL, secrets.token_bytes))
    authenticator: Authenticator = field(init=False)
    login: LoginService = field(init=False)
    users: UserService = field(init=False)
    config: AuthConfig = field(init=False)

    def __post_init__(self) -> None:
        settings, hasher = self.settings, self.hasher
        users, sessions, keys = UserStore(self.database), SessionStore(self.database), ApiKeyStore(self.database)
        idle = timedelta(hours=settings.session_idle_hours)
        self.authenticator = Authenticator(sessions, keys, wall=_wall_now, idle=idle, own={self.local: LOCAL})
        ttl = timedelta(days=settings.session_days)
        self.login = LoginService(users, sessions, hasher, self.authenticator, _wall_now, ttl=ttl)
        reset = self.login.throttle.reset
        self.users = UserService(users, keys, hasher, self.authenticator, _wall_now, reset_throttle=reset)
        rate, burst = settings.rate_per_second, settings.rate_burst
        self.config = AuthConfig(
            authenticator=self.authenticator,
            now=self.clock.now,
            max_body_bytes=settings.body_max_mb * 1_000_000,
            authenticated=TokenBuckets(rate, burst, time.monotonic),
            anonymous=TokenBuckets(rate * _ANONYMOUS_SHARE, burst * _ANONYMOUS_SHARE, time.monotonic),
            open_docs=settings.open_docs,
        )

    def issue_page_token(self, sites: Sites) -> str:
        """Return a token with which the pages may read these sites and do nothing else."""
        token = new_token(tokens.SYSTEM, secrets.token_bytes)
        self.authenticator.own[token] = replace(PAGE, sites=sites)
        return str(token)

    def write_local_token(self) -> None:
        """Write the local token where only the service's own user can read it; ``alarmcast admin`` uses it."""
        path = local_token_file(self.settings.data_dir)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.unlink(missing_ok=True)
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "w", encoding="ascii") as opened:
            opened.write(f"{self.local}\n")
        temporary.replace(path)

    def remove_local_token(self) -> None:
        """Remove the local token, unless another process has written its own since."""
        path = local_token_file(self.settings.data_dir)
        with contextlib.suppress(OSError):
            if path.read_text(encoding="ascii").strip() == str(self.local):
                path.unlink()


def local_token_file(data_dir: Path) -> Path:
    """Return the file of a running service's local token."""
    return data_dir / "admin.token"


def local_token(data_dir: Path) -> str:
    """Return the local token of the service that runs on a data folder."""
    path = local_token_file(data_dir)
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a token"
        raise InputRejected(
            f"Cannot read {path}: {reason}. Run this as the service's user, or give an API key: "
            "--key, or ALARMCAST_KEY."
        ) from None
