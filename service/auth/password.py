"""Password rules, temporary passwords, and hashing with argon2id."""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

import argon2
from argon2 import Type
from argon2.exceptions import InvalidHashError, VerificationError

from service.errors import InputRejected

MIN_LENGTH, MAX_LENGTH = 12, 200  # characters
_MIN_DISTINCT = 5
# Common passwords that are long enough.
_COMMON = (
    "password", "passwort", "motdepasse", "qwertyuiop", "letmein", "welcome", "administrator", "changeme",
    "alarmcast", "1234567890", "0987654321", "abcdefghij", "iloveyou",
)  # fmt: skip
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"  # no characters that look alike
_GROUPS, _GROUP = 5, 4


def normalize(password: str) -> str:
    """Return a password in the Unicode form that is hashed."""
    return unicodedata.normalize("NFC", password)


def validate(password: str, *, name: str) -> str:
    """Return a new password normalized, or raise with what is wrong with it."""
    normalized = normalize(password)
    weakness = _weakness(normalized, name)
    if weakness:
        raise InputRejected(
            f"The password {weakness}. Use at least {MIN_LENGTH} characters, e.g. four unrelated words."
        )
    return normalized


def generate_temporary(choose: Callable[[str], str]) -> str:
    """Return a temporary password: 20 characters, 99 bits, easy to read out."""
    groups = ("".join(choose(_ALPHABET) for _ in range(_GROUP)) for _ in range(_GROUPS))
    return "-".join(groups)


def _weakness(password: str, name: str) -> str | None:
    folded = password.casefold()
    if len(password) < MIN_LENGTH:
        return f"has fewer than {MIN_LENGTH} characters"
    if len(password) > MAX_LENGTH:
        return f"has more than {MAX_LENGTH} characters"
    if not all(character.isprintable() for character in password):
        return "has characters that cannot be typed"
    if len(set(folded)) < _MIN_DISTINCT:
        return f"consists of fewer than {_MIN_DISTINCT} different characters"
    rest = folded.replace(name.casefold(), "") if name else folded
    for word in _COMMON:
        rest = rest.replace(word, "")
    if len(rest) < MIN_LENGTH // 2:
        return "is little more than a name or a common password"
    return None


@dataclass(frozen=True)
class HashCost:
    """Cost parameters of argon2id: about 40 ms and 32 MB, above the OWASP minimum."""

    rounds: int = 3
    kilobytes: int = 32 * 1024
    lanes: int = 1


@dataclass(frozen=True)
class PasswordHasher:
    """Hashes and verifies passwords."""

    cost: HashCost = field(default_factory=HashCost)
    _hasher: argon2.PasswordHasher = field(init=False)

    def __post_init__(self) -> None:
        cost = self.cost
        hasher = argon2.PasswordHasher(cost.rounds, cost.kilobytes, cost.lanes, type=Type.ID)
        object.__setattr__(self, "_hasher", hasher)

    def hash(self, password: str) -> str:
        return self._hasher.hash(password)

    def verify(self, hashed: str | None, password: str) -> bool:
        """Return whether a password matches a hash; without a hash it does not, after the same work."""
        dummy = _dummy_hash(self._hasher)  # computed in any case, so that its first use shows nothing
        try:
            self._hasher.verify(dummy if hashed is None else hashed, password)
        except (VerificationError, InvalidHashError):
            return False
        return hashed is not None

    def is_outdated(self, hashed: str) -> bool:
        """Return whether a hash has other cost parameters than the current ones."""
        return self._hasher.check_needs_rehash(hashed)


@lru_cache(maxsize=8)
def _dummy_hash(hasher: argon2.PasswordHasher) -> str:
    """Return a hash of the same cost that no password matches."""
    return hasher.hash("the password of no user")
