"""Import each command when it is called, so that none waits for the imports of another."""

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from wire.fast_start import gc_disabled

# Command -> function or Typer group.
_COMMANDS = {
    "serve": "service.cli.serve:serve",
    "demo": "service.cli.serve:demo",
    "migrate": "service.cli.database:migrate",
    "experiment": "service.experiment.command:command",
    "admin": "service.cli.admin:app",
    "config": "service.cli.config:app",
    "train-job": "service.cli.train_job:train_job",
}
_HIDDEN = {"train-job"}  # started by the service, not by a user


class LazyGroup(TyperGroup):
    """The commands of ``alarmcast``; only the help imports all of them."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of the help."""
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Return a command by its name."""
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name].partition(":")
        with gc_disabled():
            target = getattr(import_module(module), name)
        group = target if isinstance(target, typer.Typer) else _single_command(target)
        command = get_command(group)
        command.name, command.hidden = cmd_name, cmd_name in _HIDDEN
        return command


def _single_command(function: object) -> typer.Typer:
    app = typer.Typer(add_completion=False)
    app.command()(function)  # type: ignore[type-var]
    return app
