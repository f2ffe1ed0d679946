"""``alarmcast``: serve, demo, admin; mistakes end in one sentence, never in a traceback."""

import sys
from typing import Annotated

import typer

from service import __version__
from service.cli.lazy_group import LazyGroup
from service.errors import ServiceError

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
