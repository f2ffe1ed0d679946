"""``alarmcast``: serve, demo, admin; mistakes end in one sentence, never in a traceback."""

import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from service import __version__
from service.errors import ServiceError
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


app = typer.Typer(
    name="alarmcast",
    cls=LazyGroup,
    help="Forecasts the alarms of a fleet of packaging machines.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer's callback
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Forecasts the alarms of a fleet of packaging machines."""


def run() -> None:
    """Run the command line; a :class:`ServiceError` becomes its sentence and exit code 2."""
    try:
        app()
    except ServiceError as error:
        typer.echo(f"alarmcast: {error}", err=True)
        sys.exit(2)
