"""Commands that are imported when they are called, so that none waits for what another needs."""

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from service.app.gc_tuning import gc_disabled

# Where each lives: a function, or a group of its own.
_COMMANDS = {
    "serve": "service.cli.serve:serve",
    "demo": "service.cli.serve:demo",
    "migrate": "service.cli.migrate:migrate",
    "experiment": "service.experiment.command:command",
    "admin": "service.cli.administration:app",
    "config": "service.cli.config:app",
    "train-job": "service.cli.train_job:train_job",
}
_HIDDEN = {"train-job"}  # started by the service, not by people


class LazyGroup(TyperGroup):
    """All of ``alarmcast``; its help imports everything, a command only itself."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - click's signature
        """Return their names in the order in which the help shows them."""
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Return a command by its name."""
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name].partition(":")
        with gc_disabled():
            found = getattr(import_module(module), name)
        group = found if isinstance(found, typer.Typer) else _alone(found)
        command = get_command(group)
        command.name, command.hidden = cmd_name, cmd_name in _HIDDEN
        return command


def _alone(function: object) -> typer.Typer:
    app = typer.Typer(add_completion=False)
    app.command()(function)  # type: ignore[type-var]
    return app
