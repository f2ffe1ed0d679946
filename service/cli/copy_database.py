"""``alarmcast admin copy-database``: copy a database, mostly from SQLite to PostgreSQL."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress

from service.database import copy
from service.database.copy import CopyProgress, CopyStage
from service.database.copy_endpoint import open_endpoint

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
