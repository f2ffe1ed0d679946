"""Reads our Dockerfile: stages, and in each its instructions, with continued lines joined."""

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

KEYWORDS = frozenset(
    "ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL RUN USER VOLUME WORKDIR".split()  # noqa: SIM905 - one line
)
_FLAG = re.compile(r"--(?P<name>[a-z-]+)=(?P<value>\S+)\s+")


class NotUnderstood(ValueError):
    """A line this reader has no meaning for; guessing would make the tests lie."""


@dataclass(frozen=True)
class Instruction:
    """One instruction: ``RUN --mount=x pip install .`` has one flag and the rest as its text."""

    keyword: str
    flags: tuple[tuple[str, str], ...]
    text: str

    def flag(self, name: str) -> str | None:
        return next((value for flag, value in self.flags if flag == name), None)

    def mounts(self) -> list[dict[str, str]]:
        """Return the options of each ``--mount``."""
        values = [value for flag, value in self.flags if flag == "mount"]
        return [dict(part.split("=", 1) for part in value.split(",")) for value in values]

    def words(self) -> list[str]:
        """Return a list from the exec form, or from words as a shell would split them."""
        if self.text.startswith("["):
            return [str(word) for word in json.loads(self.text)]
        return shlex.split(self.text)

    def nested(self) -> "Instruction":
        """Return the instruction that a HEALTHCHECK holds."""
        return _instruction(self.text)

    @property
    def is_exec_form(self) -> bool:
        return self.text.startswith("[")


@dataclass
class Stage:
    """What follows one FROM."""

    name: str
    base: str
    instructions: list[Instruction] = field(default_factory=list)


@dataclass(frozen=True)
class Dockerfile:
    """All stages by name, in order."""

    stages: dict[str, Stage]

    def lineage(self, target: str) -> list[Instruction]:
        """Return everything that makes a target: the instructions of the stages it stands on, then its own."""
        stage = self.stages[target]
        inherited = self.lineage(stage.base) if stage.base in self.stages else []
        return inherited + stage.instructions

    def last(self, target: str, keyword: str) -> Instruction:
        """Return the instruction that counts where a later one replaces an earlier one."""
        return [one for one in self.lineage(target) if one.keyword == keyword][-1]

    def environment(self, target: str) -> dict[str, str]:
        """Return what ENV sets for a target."""
        settings = [one.words() for one in self.lineage(target) if one.keyword == "ENV"]
        return dict(word.split("=", 1) for words in settings for word in words)

    def paths(self) -> set[str]:
        """Return the absolute paths at which instructions put or find things in an image."""
        found: set[str] = set()
        for stage in self.stages.values():
            for one in stage.instructions:
                if one.keyword in {"WORKDIR", "VOLUME", "COPY"}:
                    found.update(one.words())
                for mount in one.mounts():
                    if mount["type"] == "bind":
                        found.update((mount["source"], mount["target"]))
        return {path for path in found if path.startswith("/")}


def read(file: Path) -> Dockerfile:
    """Read a Dockerfile of the kind we write; every stage has a name."""
    stages: dict[str, Stage] = {}
    stage: Stage | None = None
    for one in _instructions(file.read_text(encoding="utf-8")):
        if one.keyword == "FROM":
            base, as_, name = one.words()
            if as_ != "AS":
                raise NotUnderstood(one.text)
            stage = stages[name] = Stage(name, base)
        elif stage is None:
            raise NotUnderstood(f"{one.keyword} before the first FROM")
        else:
            stage.instructions.append(one)
    return Dockerfile(stages)


def _instructions(text: str) -> list[Instruction]:
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [_instruction(line) for line in joined.splitlines()]


def _instruction(line: str) -> Instruction:
    keyword, _, rest = line.strip().partition(" ")
    if keyword not in KEYWORDS:
        raise NotUnderstood(line)
    rest, flags = rest.strip(), []
    while found := _FLAG.match(rest):
        flags.append((found["name"], found["value"]))
        rest = rest[found.end() :]
    return Instruction(keyword, tuple(flags), rest)
