"""Reads our systemd units as far as the tests need them; systemd itself checks the rest."""

import shlex
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

# Stands for any other: %i is what follows the @, the rest is as on a computer with systemd's defaults.
SPECIFIERS = {"%i": "padova-filler-1", "%S": "/var/lib", "%d": "/run/credentials"}


@dataclass(frozen=True)
class Unit:
    """Every value of every key in order; an empty one starts a list anew, as in systemd."""

    path: Path
    values: dict[str, list[str]]

    def one(self, key: str) -> str:
        """Return the value that counts where a later one replaces an earlier one."""
        return self.values[key][-1]

    def words(self, key: str) -> list[str]:
        """Return all words of a key, specifiers replaced."""
        text = " ".join(self.values[key])
        for specifier, value in SPECIFIERS.items():
            text = text.replace(specifier, value)
        return shlex.split(text)

    @property
    def environment(self) -> dict[str, str]:
        return dict(word.split("=", 1) for word in self.words("Environment"))

    @property
    def state(self) -> str:
        return f"/var/lib/{self.words('StateDirectory')[0]}"


def read(path: Path) -> Unit:
    """Read a unit file; none of ours continues a line."""
    values: dict[str, list[str]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        if "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            values[key].append(value)
    return Unit(path, values)
