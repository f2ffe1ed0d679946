"""Passwords to hashes and back to yes or no: argon2id, and as much work for a name that nobody has."""

from dataclasses import dataclass, field
from functools import lru_cache

import argon2
from argon2 import Type
from argon2.exceptions import InvalidHashError, VerificationError


@dataclass(frozen=True)
class HashCost:
    """How much a guess costs; about 40 ms and 32 MB here, beyond what OWASP asks for."""

    rounds: int = 3
    kilobytes: int = 32 * 1024
    lanes: int = 1


@dataclass(frozen=True)
class PasswordHasher:
    """Hashes and verifies."""

    cost: HashCost = field(default_factory=HashCost)
    _hasher: argon2.PasswordHasher = field(init=False)

    def __post_init__(self) -> None:
        cost = self.cost
        hasher = argon2.PasswordHasher(cost.rounds, cost.kilobytes, cost.lanes, type=Type.ID)
        object.__setattr__(self, "_hasher", hasher)

    def hash(self, password: str) -> str:
        """Return what is kept of a password."""
        return self._hasher.hash(password)

    def verify(self, kept: str | None, password: str) -> bool:
        """Say whether a password is the one that was kept; with None it is not, after the same work."""
        nobodys = _dummy_hash(self._hasher)  # made by whoever comes first, known or not
        try:
            self._hasher.verify(nobodys if kept is None else kept, password)
        except (VerificationError, InvalidHashError):
            return False
        return kept is not None

    def is_outdated(self, kept: str) -> bool:
        """Say whether a hash was made with another cost than today's."""
        return self._hasher.check_needs_rehash(kept)


@lru_cache(maxsize=8)
def _dummy_hash(hasher: argon2.PasswordHasher) -> str:
    """Return a hash of the same cost that no password has."""
    return hasher.hash("nobody has this password, because nobody has this name")
