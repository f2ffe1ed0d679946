"""Secrets from files, as containers and service managers give them: ``X_FILE`` names the file that holds ``X``.

Both sides read their settings this way, so it stands here; nothing of it travels.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

SUFFIX = "_file"
_MOST_BYTES = 64_000
_BEYOND_0640 = stat.S_IXUSR | stat.S_IWGRP | stat.S_IXGRP | stat.S_IRWXO


class SecretRejected(ValueError):
    """A secret cannot be taken from where it should be; the message says what to do."""


@dataclass(frozen=True)
class SecretFile:
    """A secret and where it was found; ``warning`` says who else can read it, if others can."""

    value: str
    path: Path
    warning: str | None = None

    def __repr__(self) -> str:
        return f"SecretFile({self.path})"


def take_secrets(
    given: Mapping[str, object], secrets: Iterable[str], spelled: Mapping[str, str] | None = None
) -> dict[str, SecretFile]:
    """Return the secrets for which a file is given beside or instead of the value itself.

    ``given`` holds settings by name, ``spelled`` how they were written, for error messages.
    """
    spelling = spelled or {}
    found: dict[str, SecretFile] = {}
    for name in secrets:
        file = f"{name}{SUFFIX}"
        if file not in given:
            continue
        if name in given:
            both = f"{spelling.get(name, name)} and {spelling.get(file, file)}"
            raise SecretRejected(f"{both} are both given; keep one of them.")
        found[name] = read_secret(Path(str(given[file])), spelling.get(file, file))
    return found


def read_secret(path: Path, setting: str) -> SecretFile:
    """Read a secret; one line end after it is not a part of it."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            body = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise SecretRejected(f"{setting} names {path}, which cannot be read: {error.strerror}.") from None
    try:
        value = body.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise SecretRejected(f"{setting} names {path}, which holds no text.") from None
    if not value or len(body) > _MOST_BYTES or not value.isprintable():
        raise SecretRejected(
            f"{setting} names {path}, which must hold one line of text, the secret, and nothing else."
        )
    warning = None
    if mode & _BEYOND_0640 and os.name == "posix":
        warning = f"{path} ({setting}) has mode {mode:04o}; others can read or change it: chmod 600 {path}"
    return SecretFile(value, path, warning)
