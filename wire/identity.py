"""Who speaks: a machine is named by its site and its own id, and only a topic may say so."""

import re
from typing import Annotated, NamedTuple

from pydantic import StringConstraints

ID_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,62}$"
_ID = re.compile(ID_PATTERN.removesuffix("$") + r"\Z")

Identifier = Annotated[str, StringConstraints(pattern=ID_PATTERN, strict=True)]


def is_identifier(text: str) -> bool:
    """Say whether ``text`` may name a site or a machine."""
    return _ID.match(text) is not None


class MachineId(NamedTuple):
    """A machine's place in the world; ordered by site, then machine."""

    site: str
    machine: str

    def __str__(self) -> str:
        return f"{self.site}/{self.machine}"

    @classmethod
    def parse(cls, text: str) -> "MachineId":
        """Read ``site/machine``, or say in a sentence what is wrong with it."""
        site, slash, machine = text.partition("/")
        if not slash or not is_identifier(site) or not is_identifier(machine):
            message = (
                f"{text!r} does not name a machine: write site/machine, each of lower-case letters, "
                "digits, '-' and '_', at most 63 characters, starting with a letter or digit."
            )
            raise ValueError(message)
        return cls(site, machine)
