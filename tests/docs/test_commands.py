"""Every command shown in the documents exists, with those options."""

import re
import shlex
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.docs.commands import problem_with
from tests.docs.markdown import ROOT, code_blocks, code_spans, markdown_files

# What was true of an earlier version may be named there.
FILES = [file for file in markdown_files() if file.name != "CHANGELOG.md"]
OURS = re.compile(
    r"^(alarmcast|alarmcast-edge|scripts/[\w-]+|python3? -m (benchmarks|tests|wire|service|edge_agent)\b\S*)( |$)"
)
# What may stand before a command: variables, another user, a container.
BEFORE = re.compile(
    r"^(\w+=\S* |sudo (-u \S+ )?|exec |docker compose exec \S+ |docker compose run --rm --entrypoint )+"
)
INSTALLED = re.compile(r"^\S*/bin/(alarmcast(-edge)?|python) ")


def command_lines(text: str) -> Iterator[str]:
    """Yield the commands of ours in a shell text, without comments and what surrounds them."""
    for line in text.replace("\\\n", " ").splitlines():
        for part in re.split(r"\s+(?:&&|\|\||\||;|>|<)\s+|;\s|\s+#\s.*$", line):
            command = INSTALLED.sub(r"\1 ", BEFORE.sub("", part.strip().removeprefix("$ ")))
            if OURS.match(command):
                yield command


def alternatives(command: str) -> Iterator[list[str]]:
    """Yield the command lines that ``a|b`` and ``[--option]`` stand for."""
    words = shlex.split(re.sub(r"[\[\]]", "", command))
    choices = [word.split("|") if re.fullmatch(r"[a-z-]+(\|[a-z-]+)+", word) else [word] for word in words]
    for chosen in product(*choices):
        yield list(chosen)


def problems(commands: Iterator[str], *, complete: bool) -> list[str]:
    return [
        f"{command}: {problem}"
        for command in commands
        for words in alternatives(command)
        if (problem := problem_with(words, complete=complete))
    ]


def shown_commands(file: Path) -> Iterator[str]:
    for block in code_blocks(file):
        if block.language in {"", "sh", "bash", "shell", "console"}:
            yield from command_lines(block.text)


def named_commands(file: Path) -> Iterator[str]:
    for span in code_spans(file):
        yield from command_lines(span.text)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_command_in_a_code_block_exists_with_its_options(file: Path) -> None:
    assert problems(shown_commands(file), complete=True) == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_command_named_in_the_text_exists_with_its_options(file: Path) -> None:
    assert problems(named_commands(file), complete=False) == []


def test_the_documents_show_commands_of_every_program() -> None:
    programs = {command.split()[0].partition("/")[0] for file in FILES for command in shown_commands(file)}
    assert {"alarmcast", "alarmcast-edge", "scripts", "python"} <= programs


@pytest.mark.parametrize(
    "command",
    [
        "alarmcast no-such-command",
        "alarmcast serve --no-such-option",
        "alarmcast serve too-many",
        "alarmcast admin",
        "alarmcast admin watch",
        "alarmcast-edge no-such-command",
        "alarmcast-edge run --no-such-option",
        "scripts/no-such-script",
        "scripts/demo --no-such-option",
        "scripts/faults --no-such-option",
        "python -m benchmarks.none",
        "python -m benchmarks --no-such-option",
        "FOO=1 sudo -u alarmcast /opt/alarmcast/bin/alarmcast nothing && true",
    ],
)
def test_command_that_does_not_exist_is_found(command: str) -> None:
    assert len(problems(command_lines(command), complete=True)) == 1
