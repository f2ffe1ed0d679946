"""Who may come in: the desks of people and keys, the guard's door, and the key that is left in the data folder."""

import contextlib
import os
import secrets
import time
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from service.auth import tokens as secret
from service.auth.authenticator import LOCAL, PAGE, Authenticator
from service.auth.login import LoginService
from service.auth.middleware import AuthConfig
from service.auth.password_hash import PasswordHasher
from service.auth.store import ApiKeyStore, SessionStore, UserStore
from service.auth.tokens import Token, new_token
from service.auth.users import UserService
from service.database.engine import Database
from service.errors import InputRejected
from service.http.principal import Sites
from service.http.rate_limit import TokenBuckets
from service.learning.enrolment_service import wall_now
from service.messaging.bus import ChangeBus
from service.settings import Settings
from wire.clock import PlantClock

_STRANGERS_SHARE = 0.1  # of what those may ask whom we know


def _token(kind: str) -> Token:
    return new_token(kind, secrets.token_bytes)


@dataclass
class AuthServices:
    """All that decides who may come in; ``local`` is a key that lives as long as this process."""

    settings: Settings
    database: Database
    clock: PlantClock = field(default_factory=PlantClock)
    bus: ChangeBus = field(default_factory=ChangeBus)
    hasher: PasswordHasher = field(default_factory=PasswordHasher)
    local: Token = field(default_factory=lambda: _token(secret.LOCAL))
    access: Authenticator = field(init=False)
    sign_in: LoginService = field(init=False)
    people: UserService = field(init=False)
    door: AuthConfig = field(init=False)

    def __post_init__(self) -> None:
        settings = self.settings
        users, sessions, keys = UserStore(self.database), SessionStore(self.database), ApiKeyStore(self.database)
        self.access = Authenticator(
            sessions,
            keys,
            wall=wall_now,
            idle=timedelta(hours=settings.session_idle_hours),
            own={self.local: LOCAL},
            bus=self.bus,
        )
        self.sign_in = LoginService(
            users, sessions, self.hasher, self.access, wall_now, lasts=timedelta(days=settings.session_days)
        )
        self.people = UserService(
            users, keys, self.hasher, self.access, wall_now, reset_throttle=self.sign_in.throttle.reset
        )
        rate, burst = settings.rate_per_second, settings.rate_burst
        self.door = AuthConfig(
            access=self.access,
            now=self.clock.now,
            largest_body=settings.body_max_mb * 1_000_000,
            known=TokenBuckets(rate, burst, time.monotonic),
            strangers=TokenBuckets(rate * _STRANGERS_SHARE, burst * _STRANGERS_SHARE, time.monotonic),
            open_docs=settings.open_docs,
        )

    def issue_page_token(self, sites: Sites) -> str:
        """Return a key with which the pages may look at these sites, and do nothing else."""
        token = _token(secret.SYSTEM)
        self.access.own[token] = replace(PAGE, sites=sites)
        return str(token)

    def write_local_token(self) -> None:
        """Write the local key where only the service's own user can read it; ``alarmcast admin`` looks there."""
        path = local_token_file(self.settings.data_dir)
        fresh = path.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "w", encoding="ascii") as opened:
            opened.write(f"{self.local}\n")
        fresh.replace(path)

    def remove_local_token(self) -> None:
        """Remove the local key, unless another process has left its own since."""
        path = local_token_file(self.settings.data_dir)
        with contextlib.suppress(OSError):
            if path.read_text(encoding="ascii").strip() == str(self.local):
                path.unlink()


def local_token_file(data_dir: Path) -> Path:
    """Return where a running service leaves its local key."""
    return data_dir / "admin.token"


def local_token(data_dir: Path) -> str:
    """Return the key of the service that works in a folder, or say in a sentence who may read it."""
    path = local_token_file(data_dir)
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no key"
        raise InputRejected(
            f"Cannot read {path}: {why}. Ask as the user that the service runs as, or give an API key: "
            "--key, or ALARMCAST_KEY."
        ) from None
