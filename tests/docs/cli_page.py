"""Build docs/reference/cli.md from the commands themselves."""

import subprocess
import sys
from collections.abc import Iterator

from tests.docs.commands import Command, service_commands
from tests.docs.markdown import ROOT

_HEAD = """# Command line

Written by `scripts/reference` from the commands; a test compares the page with them. Every command has
`--help`.

Errors are one sentence on standard error, with exit code 2.

`alarmcast admin` talks to the running service. On the service's own computer it finds the address in the data
folder (`--data-dir`) and needs no key. If no service runs there, the command does the work in its own process.
From another computer: `alarmcast admin --url URL --key KEY COMMAND`, or `ALARMCAST_KEY` instead of `--key`.
"""


def page() -> str:
    """Return the whole page."""
    commands = [command for command in service_commands() if not command.is_group and not command.hidden]
    admin = [command for command in commands if command.path.startswith("alarmcast admin ")]
    parts = [_HEAD]
    for title, rows in (
        ("alarmcast", [one for one in commands if one not in admin]),
        ("alarmcast admin", admin),
    ):
        parts += [f"## {title}\n", "| command | options | what it does |", "|---|---|---|", *map(_row, rows), ""]
    return "\n".join([*parts, "## alarmcast-edge\n", *_edge(), ""])


def _row(command: Command) -> str:
    name = " ".join([command.path, *command.arguments])
    options = " ".join(f"`{option}`" for option in command.options if option != "--help")
    return f"| `{name}` | {options} | {command.summary} |"


def _edge() -> Iterator[str]:
    """Yield the help of the agent's command line; its options are the agent's settings."""
    agent = "[agent's settings](settings.md#the-edge-agent)"
    yield f"Options of `run`, `status` and `doctor`: `--config` and the {agent}."
    for arguments in ([], ["simulate"]):
        shown = subprocess.run(
            [sys.executable, "-m", "edge_agent", *arguments, "--help"],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            env={"COLUMNS": "110", "PYTHON_COLORS": "0"},
        )
        yield "\n```text\n" + shown.stdout.strip() + "\n```"
