"""``alarmcast admin backup`` and ``alarmcast admin restore``."""

from pathlib import Path
from typing import Annotated

import typer

from service.app.configuration import load_settings
from service.app.stores import open_stores
from service.database.backup import back_up, restore
from service.database.locks import WriterLock
from service.errors import InputRejected
from service.settings import Settings

DataDir = Annotated[Path | None, typer.Option(help="Folder of database and weights.")]


def backup_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder for the backup.")],
    data_dir: DataDir = None,
) -> None:
    """Back up database and weights; the service may run."""
    settings = load_settings(data_dir=data_dir)
    _require_sqlite(settings)
    manifest = back_up(settings.data_dir, folder)
    models = len(manifest.files) - 1
    typer.echo(f"{manifest.events} events of {manifest.machines} machines and {models} models in {folder}")
    if manifest.lost:
        typer.echo(f"Weights missing or damaged: {', '.join(manifest.lost)}; these versions cannot be used.")


def restore_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A backup.")], data_dir: DataDir = None
) -> None:
    """Replace the database by a backup; the old one is moved aside. The service must be stopped."""
    settings = load_settings(data_dir=data_dir)
    _require_sqlite(settings)
    with WriterLock(settings.data_dir / "alarmcast.lock"):
        manifest, aside = restore(folder, settings.data_dir)
    with open_stores(settings, check=True):
        pass  # upgrades the schema
    typer.echo(f"Restored {manifest.events} events of {manifest.machines} machines as of {manifest.made_at}.")
    if aside:
        typer.echo(f"The previous database is in {aside}; delete it when it is no longer needed.")


def _require_sqlite(settings: Settings) -> None:
    if settings.database_url and not settings.database_url.startswith("sqlite:"):
        raise InputRejected("The database is PostgreSQL: back it up with pg_dump and restore it with pg_restore.")
    if settings.database_url:
        raise InputRejected("Backups are of the database in data_dir; unset ALARMCAST_DATABASE_URL to use it.")
