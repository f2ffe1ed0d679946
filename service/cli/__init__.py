"""``alarmcast``: serve, demo, admin; mistakes end in one sentence, never in a traceback."""

import sys
from typing import Annotated

import typer

from service import __version__
from service.cli import admin, apprentice, backup, broker, config, copy_database, migrate, serve, tls
from service.errors import ServiceError
from service.experiment.command import command as experiment

app = typer.Typer(
    name="alarmcast",
    help="Forecasts the alarms of a fleet of packaging machines.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("serve")(serve.serve)
app.command("demo")(serve.demo)
app.command("migrate")(migrate.migrate)
app.command("experiment")(experiment)
app.command("apprentice", hidden=True)(apprentice.apprentice)
admin.app.command("backup")(backup.backup_command)
admin.app.command("restore")(backup.restore_command)
admin.app.command("copy-database")(copy_database.copy_database)
admin.app.command("broker-init")(broker.broker_init)
admin.app.command("tls-init")(tls.tls_init)
app.add_typer(admin.app, name="admin")
app.add_typer(config.app, name="config")


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
