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

ELLIPSIS = "…"
_FORWARDS = re.compile(r'^exec \S*/bin/(\w+)"? (.*?)"\$@"$', re.MULTILINE)


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


class NoSuchCommand(Exception):
    """A command line that does not work."""


def problem_with(words: Sequence[str], *, complete: bool) -> str | None:
    """Return what is wrong with a command line, or None; ``complete`` requires what the command requires."""
    try:
        _check(words, complete=complete)
    except NoSuchCommand as error:
        return str(error)
    return None


def _check(words: Sequence[str], *, complete: bool) -> None:
    program, *rest = words
    if program == "alarmcast":
        _check_service(rest, complete=complete)
    elif program == "alarmcast-edge":
        _check_edge(rest)
    elif program.startswith("scripts/"):
        _check_script(program, rest, complete=complete)
    elif program in {"python", "python3"} and rest[:1] == ["-m"]:
        _check_module(rest[1:])


def _check_service(words: Sequence[str], *, complete: bool) -> None:
    command, waiting, positional, given = _by_path()["alarmcast"], list(words), 0, set()
    while waiting:
        word = waiting.pop(0)
        if word.startswith("-"):
            given.add(_check_option(command, word, waiting))
        elif command.is_group and (word.isupper() or word == ELLIPSIS):
            return  # stands for any command
        elif command.is_group:
            command = _below(command, word)
        elif word != ELLIPSIS:
            positional += 1
    if positional > len(command.arguments) and not command.unlimited:
        raise NoSuchCommand(f"{command.path} takes {len(command.arguments)} arguments, not {positional}")
    if complete and not given & {"--help", "--version"}:
        _check_complete(command, positional, given)


def _check_option(command: Command, word: str, waiting: list[str]) -> str:
    """Return the name of an option, taking its value from the words that follow it."""
    name, has_value, _ = word.partition("=")
    if name not in command.options:
        raise NoSuchCommand(f"{command.path} has no option {name}")
    if command.options[name] and not has_value:
        if not waiting:
            raise NoSuchCommand(f"{name} of {command.path} has no value")
        waiting.pop(0)
    return name


def _below(group: Command, word: str) -> Command:
    path = f"{group.path} {word}"
    if path not in _by_path():
        raise NoSuchCommand(f"there is no command {path}")
    return _by_path()[path]


def _check_complete(command: Command, positional: int, given: set[str]) -> None:
    if command.is_group:
        raise NoSuchCommand(f"{command.path} needs a command")
    if positional < command.needed:
        raise NoSuchCommand(f"{command.path} needs {' '.join(command.arguments)}")
    if missing := set(command.required) - given:
        raise NoSuchCommand(f"{command.path} needs {', '.join(sorted(missing))}")


def _check_edge(words: Sequence[str]) -> None:
    command = [] if not words or words[0].startswith("-") else [words[0]]
    shown = _help_of("edge_agent", *command)
    if shown is None:
        raise NoSuchCommand(f"there is no command alarmcast-edge {words[0]}")
    _check_in_help(words[len(command) :], shown)


def _check_script(script: str, words: Sequence[str], *, complete: bool) -> None:
    file = ROOT / script
    if not file.is_file() or not os.access(file, os.X_OK):
        raise NoSuchCommand(f"there is no script {script}")
    if not words:
        return
    forwards = _FORWARDS.findall(file.read_text(encoding="utf-8"))
    if not forwards:
        raise NoSuchCommand(f"{script} takes no arguments")
    program, own = forwards[-1]
    _check([program, *shlex.split(own), *words], complete=complete)


def _check_module(words: Sequence[str]) -> None:
    module, *rest = words
    if module == "pytest":
        return
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise NoSuchCommand(f"there is no module {module}")
    if any(word.startswith("-") for word in rest):
        _check_in_help(rest, _help_of(module) or "")


def _check_in_help(words: Sequence[str], shown: str) -> None:
    for word in words:
        name = word.partition("=")[0]
        if name.startswith("-") and not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", shown):
            raise NoSuchCommand(f"there is no option {name}")


@cache
def _help_of(module: str, *words: str) -> str | None:
    """Return the help that a module prints, or None if it does not know the command."""
    command = [sys.executable, "-m", module, *words, "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    return shown.stdout if shown.returncode == 0 else None
