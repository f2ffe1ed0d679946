"""``alarmcast admin backup`` and ``restore``: a copy of one moment while the service runs, and the way back."""

from pathlib import Path
from typing import Annotated

import typer

from service.app.configuration import load_settings
from service.app.stores import open_stores
from service.database.backup import back_up, restore
from service.database.locks import WriterLock
from service.errors import InputRejected
from service.settings import Settings

DataDir = Annotated[Path | None, typer.Option(help="Where database and weights live.")]


def backup_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder for the backup.")],
    data_dir: DataDir = None,
) -> None:
    """Copy database and weights, checked; the service may be running and is not slowed down."""
    settings = load_settings(data_dir=data_dir)
    _insist_on_sqlite(settings)
    made = back_up(settings.data_dir, folder)
    typer.echo(f"{made.events} events of {made.machines} machines and {len(made.files) - 1} models in {folder}")
    if made.lost:
        typer.echo(f"No whole weights were found of {', '.join(made.lost)}; those versions cannot serve.")


def restore_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A backup.")], data_dir: DataDir = None
) -> None:
    """Put a backup in the place of the database, which is put aside; the service must not be running."""
    settings = load_settings(data_dir=data_dir)
    _insist_on_sqlite(settings)
    with WriterLock(settings.data_dir / "alarmcast.lock"):
        made, aside = restore(folder, settings.data_dir)
    with open_stores(settings, check=True):
        pass  # brought to this version's schema
    typer.echo(f"Restored {made.events} events of {made.machines} machines as of {made.made_at}.")
    if aside:
        typer.echo(f"What was there before is in {aside}; delete it when all is well.")


def _insist_on_sqlite(settings: Settings) -> None:
    if settings.database_url and not settings.database_url.startswith("sqlite:"):
        raise InputRejected("The store is PostgreSQL: back it up with pg_dump and restore it with pg_restore.")
    if settings.database_url:
        raise InputRejected("Backups are of the database in data_dir; unset ALARMCAST_DATABASE_URL to use it.")
