"""The commands that exist, read from the code, and a check of a command line against them."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from typer.main import get_command

from service.cli import app
from tests.docs.markdown import ROOT

_FORWARDS = re.compile(r'^exec \S*/bin/(\S+)"? (.*?)"\$@"$', re.MULTILINE)


@dataclass(frozen=True)
class Command:
    """A command of ``alarmcast``: its options, each with whether it takes a value, and its arguments."""

    path: str
    summary: str = ""
    options: dict[str, bool] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    needed: int = 0
    unlimited: bool = False
    is_group: bool = False
    hidden: bool = False


@cache
def service_commands() -> tuple[Command, ...]:
    """Return every command and group of ``alarmcast``."""
    return tuple(_walk(get_command(app), "alarmcast", hidden=False))


def _walk(command: Any, path: str, *, hidden: bool) -> Iterator[Command]:
    is_group = hasattr(command, "list_commands")
    hidden = hidden or bool(command.hidden)
    options: dict[str, bool] = {"--help": False}
    required = []
    positional = []
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            positional.append(parameter)
            continue
        for name in (*parameter.opts, *parameter.secondary_opts):
            options[name] = not (parameter.is_flag or parameter.count)
        if parameter.required:
            required.append(parameter.opts[0])
    yield Command(
        path=path,
        summary=" ".join((command.help or "").split("\n\n")[0].split()).replace("``", "`"),
        options=options,
        required=tuple(required),
        arguments=tuple((parameter.metavar or parameter.name).upper() for parameter in positional),
        needed=sum(bool(parameter.required) for parameter in positional),
        unlimited=any(parameter.nargs == -1 for parameter in positional),
        is_group=is_group,
        hidden=hidden,
    )
    if is_group:
        for name in command.list_commands(None):
            yield from _walk(command.get_command(None, name), f"{path} {name}", hidden=hidden)


@cache
def _by_path() -> dict[str, Command]:
    return {command.path: command for command in service_commands()}


def problem_with(words: Sequence[str], *, complete: bool) -> str | None:
    """Return what is wrong with a command line, or None; ``complete`` requires what the command requires."""
    program, *rest = words
    if program == "alarmcast":
        return _service_problem(rest, complete=complete)
    if program == "alarmcast-edge":
        return _edge_problem(rest)
    if program.startswith("scripts/"):
        return _script_problem(program, rest, complete=complete)
    if program in {"python", "python3"} and rest[:1] == ["-m"]:
        return _module_problem(rest[1:])
    return None


def _service_problem(words: Sequence[str], *, complete: bool) -> str | None:
    command, waiting, positional, given = _by_path()["alarmcast"], list(words), 0, set()
    while waiting:
        word = waiting.pop(0)
        if word.startswith("-"):
            name, has_value, _ = word.partition("=")
            if name not in command.options:
                return f"{command.path} has no option {name}"
            given.add(name)
            if command.options[name] and not has_value:
                if not waiting:
                    return f"{name} of {command.path} has no value"
                waiting.pop(0)
        elif command.is_group:
            below = _by_path().get(f"{command.path} {word}")
            if below is None:
                return f"there is no command {command.path} {word}"
            command = below
        else:
            positional += 1
    if positional > len(command.arguments) and not command.unlimited:
        return f"{command.path} takes {len(command.arguments)} arguments, not {positional}"
    if complete and not given & {"--help", "--version"}:
        return _incomplete(command, positional, given)
    return None


def _incomplete(command: Command, positional: int, given: set[str]) -> str | None:
    if command.is_group:
        return f"{command.path} needs a command"
    if positional < command.needed:
        return f"{command.path} needs {' '.join(command.arguments)}"
    missing = set(command.required) - given
    return f"{command.path} needs {', '.join(sorted(missing))}" if missing else None


def _edge_problem(words: Sequence[str]) -> str | None:
    if not words or words[0].startswith("-"):
        return _not_in_help(words, _help_of("edge_agent"))
    shown = _help_of("edge_agent", words[0])
    if shown is None:
        return f"there is no command alarmcast-edge {words[0]}"
    return _not_in_help(words[1:], shown)


def _script_problem(script: str, words: Sequence[str], *, complete: bool) -> str | None:
    file = ROOT / script
    if not file.is_file() or not os.access(file, os.X_OK):
        return f"there is no script {script}"
    forwards = _FORWARDS.findall(file.read_text(encoding="utf-8"))
    if not words:
        return None
    if not forwards:
        return f"{script} takes no arguments" if any(word.startswith("-") for word in words) else None
    program, own = forwards[-1]
    return problem_with([program, *shlex.split(own), *words], complete=complete)


def _module_problem(words: Sequence[str]) -> str | None:
    module, *rest = words
    if module == "pytest":
        return None
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        found = None
    if found is None:
        return f"there is no module {module}"
    return _not_in_help(rest, _help_of(module)) if any(word.startswith("-") for word in rest) else None


def _not_in_help(words: Sequence[str], shown: str | None) -> str | None:
    for word in words:
        name = word.partition("=")[0]
        if name.startswith("-") and not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", shown or ""):
            return f"there is no option {name}"
    return None


@cache
def _help_of(module: str, *words: str) -> str | None:
    """Return the help that a module prints, or None if it does not know the command."""
    command = [sys.executable, "-m", module, *words, "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    return shown.stdout if shown.returncode == 0 else None
