"""Bearer tokens: a prefix to look them up by and a random secret, stored as SHA-256."""

import hmac
from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple

RANDOM_BYTES = 32
KEY, SESSION, LOCAL, SYSTEM = "ack", "acs", "acl", "acy"  # the first part of a token tells its kind
MAX_LENGTH = 200


class Token(NamedTuple):
    """The parts of a token: its kind, a public prefix, and the secret."""

    kind: str
    prefix: str
    secret: str

    def __str__(self) -> str:
        return f"{self.kind}_{self.prefix}_{self.secret}"


def new_token(kind: str, random: Callable[[int], bytes]) -> Token:
    """Return a new token; ``random`` returns cryptographically secure bytes."""
    return Token(kind, random(6).hex(), random(RANDOM_BYTES).hex())


def read_token(text: str) -> Token | None:
    """Parse a token; None if the text is not one."""
    parts = text.split("_") if len(text) <= MAX_LENGTH else []
    if len(parts) != len(Token._fields) or not all(parts) or not text.isascii():
        return None
    return Token(*parts)


def digest(secret: str) -> str:
    """Return the SHA-256 that is stored; 32 random bytes need no salt."""
    return sha256(secret.encode()).hexdigest()


def matches(secret: str, stored: str) -> bool:
    """Return whether a secret has the stored digest, in constant time."""
    return hmac.compare_digest(digest(secret), stored)
