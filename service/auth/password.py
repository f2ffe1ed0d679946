"""Which passwords are taken, and how one is made that is told once."""

import unicodedata
from collections.abc import Callable

from service.errors import InputRejected

SHORTEST, LONGEST = 12, 200  # characters; the hash takes any length, and a megabyte of password only costs time
_FEWEST_DIFFERENT = 5
# Long enough and yet the first that anybody tries. Shorter ones are refused for their length.
_COMMON = (
    "password", "passwort", "motdepasse", "qwertyuiop", "letmein", "welcome", "administrator", "changeme",
    "alarmcast", "1234567890", "0987654321", "abcdefghij", "iloveyou",
)  # fmt: skip
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"  # nothing that looks like something else
_GROUPS, _GROUP = 5, 4


def normalize(password: str) -> str:
    """Return a password as it is hashed: two ways to type one character are one password."""
    return unicodedata.normalize("NFC", password)


def validate(password: str, *, name: str) -> str:
    """Return a new password as it is hashed, or say in a sentence what is wrong with it."""
    ready = normalize(password)
    why = _weakness(ready, name)
    if why:
        raise InputRejected(f"The password {why}. Use at least {SHORTEST} characters, e.g. four unrelated words.")
    return ready


def generate_temporary(choose: Callable[[str], str]) -> str:
    """Return a password that is told once: 20 characters, 99 bits, readable over a telephone."""
    groups = ("".join(choose(_ALPHABET) for _ in range(_GROUP)) for _ in range(_GROUPS))
    return "-".join(groups)


def _weakness(password: str, name: str) -> str | None:
    folded = password.casefold()
    if len(password) < SHORTEST:
        return f"has fewer than {SHORTEST} characters"
    if len(password) > LONGEST:
        return f"has more than {LONGEST} characters"
    if not all(character.isprintable() for character in password):
        return "has characters that cannot be typed"
    if len(set(folded)) < _FEWEST_DIFFERENT:
        return f"consists of fewer than {_FEWEST_DIFFERENT} different characters"
    rest = folded.replace(name.casefold(), "") if name else folded
    for word in _COMMON:
        rest = rest.replace(word, "")
    if len(rest) < SHORTEST // 2:
        return "is little more than a name or one of the passwords that are tried first"
    return None
