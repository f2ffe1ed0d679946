"""Tokens that nobody can guess, and what is kept of them: a sha256, because 32 random bytes need no salt."""

import hmac
from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple

RANDOM_BYTES = 32
KEY, SESSION, LOCAL, SYSTEM = "ack", "acs", "acl", "acy"  # how a token begins says where to look for it
MAX_LENGTH = 200


class Token(NamedTuple):
    """A token in its parts: what kind it is, a public name to find it by, and the secret rest."""

    kind: str
    prefix: str
    secret: str

    def __str__(self) -> str:
        return f"{self.kind}_{self.prefix}_{self.secret}"


def new_token(kind: str, random: Callable[[int], bytes]) -> Token:
    """Return a new token; ``random`` gives bytes that nobody can guess."""
    return Token(kind, random(6).hex(), random(RANDOM_BYTES).hex())


def read_token(text: str) -> Token | None:
    """Take a token apart, or return None for what cannot be one."""
    parts = text.split("_") if len(text) <= MAX_LENGTH else []
    if len(parts) != len(Token._fields) or not all(parts) or not text.isascii():
        return None
    return Token(*parts)


def digest(secret: str) -> str:
    """Return what is kept of a secret."""
    return sha256(secret.encode()).hexdigest()


def matches(secret: str, kept: str) -> bool:
    """Say whether a secret is the one that was kept, taking the same time for every wrong one."""
    return hmac.compare_digest(digest(secret), kept)
