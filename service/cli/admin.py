"""``alarmcast admin``: commands that call the service, and commands that work on the data folder."""

from typing import Annotated

import typer

from service.app.configuration import client_key
from service.cli import answers, broker, database, enrol, machine, model, notifications, policy
from service.cli import users as people
from service.cli.arguments import DataDir, File, read
from service.cli.client import api, set_options

app = typer.Typer(help="Machines, catalogue, history, learning, people.", no_args_is_help=True)
catalogue_app = typer.Typer(help="The alarm catalogue.", no_args_is_help=True)
history_app = typer.Typer(help="A machine's past.", no_args_is_help=True)


@app.callback()
def admin(
    url: Annotated[
        str | None, typer.Option(envvar="ALARMCAST_URL", help="Ask the service at this address, with --key.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(help="An API key; better in ALARMCAST_KEY or ALARMCAST_KEY_FILE, where no list shows it."),
    ] = None,
) -> None:
    """Machines, catalogue, history, learning, people."""
    set_options(url, key or client_key())


app.command("enrol")(enrol.enrol)
app.command("watch")(enrol.watch)
app.command("jobs")(model.jobs)
app.add_typer(machine.app, name="machine")
app.add_typer(model.app, name="model")
app.add_typer(notifications.app, name="webhook")
app.add_typer(policy.app, name="policy")
app.command("shelve")(notifications.shelve)
app.command("maintenance")(notifications.maintenance)
app.command("answer")(answers.answer)
app.command("answers")(answers.answers)
app.add_typer(people.users, name="user")
app.add_typer(people.keys, name="key")
app.command("backup")(database.backup_command)
app.command("restore")(database.restore_command)
app.command("copy-database")(database.copy_database)
app.command("broker-init")(broker.broker_init)
app.command("broker-adopt")(broker.broker_adopt)
app.command("broker-repair")(broker.broker_repair)
app.command("tls-init")(broker.tls_init)
app.add_typer(catalogue_app, name="catalogue")
app.add_typer(history_app, name="history")
history_app.command("load")(enrol.history_load)
for group in (catalogue_app, history_app):
    group.callback()(lambda: None)  # or typer would make a group of one command that command


@catalogue_app.command("load")
def catalogue_load(file: File, data_dir: DataDir = None) -> None:
    """Add a CSV with the columns code, text, severity (low, medium, high) and target (yes, no).

    Optional columns: cause, consequence, action, link. Without a column what is known is kept.
    """
    codes = read(file)
    with api(data_dir) as client:
        merged = client.catalogue.add(codes)
    typer.echo(f"{merged.entries} codes read, {merged.new} of them new.")
    if merged.warning:
        typer.echo(f"Note: {merged.warning}", err=True)


@catalogue_app.command("export")
def catalogue_export(data_dir: DataDir = None) -> None:
    """Print the catalogue as CSV, which load accepts."""
    with api(data_dir) as client:
        typer.echo(b"".join(client.catalogue.export()), nl=False)
