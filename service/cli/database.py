"""``alarmcast migrate``, and ``alarmcast admin`` backup, restore and copy-database."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress

from service.app.configuration import load_settings
from service.app.stores import open_stores
from service.cli.arguments import DataDir
from service.database import copy
from service.database.backup import back_up, restore
from service.database.copy import CopyProgress, CopyStage
from service.database.copy_endpoint import open_endpoint
from service.database.locks import WriterLock
from service.errors import InputRejected
from service.settings import Settings


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


_NAME_HELP = "a data folder or a URL; keep the password in PGPASSWORD or .pgpass"
_LINES_PER_TABLE = 10


def copy_database(
    source: Annotated[str, typer.Argument(metavar="FROM", help=f"The database to copy: {_NAME_HELP}.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="An empty database, named likewise.")],
) -> None:
    """Copy a whole database into another one and compare both row by row; the service must be stopped.

    Run the same command again to resume an interrupted copy.
    """
    with open_endpoint(source) as original, open_endpoint(target) as copied, _progress() as on_progress:
        result = copy.copy_database(original, copied, on_progress=on_progress)
    if result.resumed:
        typer.echo(f"{result.resumed} rows were already there from an interrupted copy.")
    if result.lost:
        typer.echo(
            f"Weights not found: {', '.join(result.lost)}; restore their files if these versions are needed."
        )
    typer.echo(f"{result.rows} rows copied to {copied.name}; both databases were compared, all tables are equal.")


@contextmanager
def _progress() -> Iterator[CopyProgress]:
    """Show a progress bar on a terminal, otherwise a few lines for each table."""
    if not Console().is_terminal:
        yield _progress_lines()
        return
    with Progress(*Progress.get_default_columns(), MofNCompleteColumn(), transient=True) as progress:
        bar = progress.add_task("Opening", total=None)

        def update(stage: CopyStage, table: str, rows: int, total: int) -> None:
            progress.update(bar, description=f"{stage} {table}", completed=rows, total=total)

        yield update


def _progress_lines() -> CopyProgress:
    last = ("", 0)

    def update(stage: CopyStage, table: str, rows: int, total: int) -> None:
        nonlocal last
        line = (f"{stage} {table}", rows * _LINES_PER_TABLE // total if total else _LINES_PER_TABLE)
        if total and line != last:
            typer.echo(f"{line[0]}: {rows} of {total} rows")
        last = line

    return update


def migrate(data_dir: DataDir = None) -> None:
    """Upgrade the database schema to this version; ``serve`` does the same at startup."""
    with open_stores(load_settings(data_dir=data_dir)):
        typer.echo("The database has the schema of this version.")
