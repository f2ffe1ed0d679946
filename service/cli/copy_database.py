"""``alarmcast admin copy-database``: from SQLite to PostgreSQL, above all, or between any two databases."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress

from service.database.copy.endpoint import opened
from service.database.copy.progress import CopyProgress, CopyStage
from service.database.copy.run import copy_store

_HOW = "a data folder, or a URL; leave its password to PGPASSWORD or .pgpass, where no list shows it"
_LINES_A_TABLE = 10


def copy_database(
    source: Annotated[str, typer.Argument(metavar="FROM", help=f"The database to copy: {_HOW}.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="An empty one, named likewise.")],
) -> None:
    """Copy all that a service has stored into another database, and check it row by row; no service may run.

    A copy that was cut off goes on where it was when the same command is given again.
    """
    with opened(source) as original, opened(target) as copy, _shown() as told:
        done = copy_store(original, copy, told=told)
    if done.before:
        typer.echo(f"{done.before} rows were there already from a copy that was cut off.")
    if done.lost:
        typer.echo(f"No weights were found of {', '.join(done.lost)}; bring their files back if they shall serve.")
    typer.echo(f"{done.rows} rows copied to {copy.name}; both were read again, and every table is the same.")


@contextmanager
def _shown() -> Iterator[CopyProgress]:
    """Yield what shows how far the copy is: a bar on a terminal, a few plain lines for each table elsewhere."""
    if not Console().is_terminal:
        yield _in_lines()
        return
    with Progress(*Progress.get_default_columns(), MofNCompleteColumn(), transient=True) as progress:
        bar = progress.add_task("Opening", total=None)

        def told(stage: CopyStage, table: str, rows: int, of: int) -> None:
            progress.update(bar, description=f"{stage} {table}", completed=rows, total=of)

        yield told


def _in_lines() -> CopyProgress:
    last = ("", 0)

    def told(stage: CopyStage, table: str, rows: int, of: int) -> None:
        nonlocal last
        line = (f"{stage} {table}", rows * _LINES_A_TABLE // of if of else _LINES_A_TABLE)
        if of and line != last:
            typer.echo(f"{line[0]}: {rows} of {of} rows")
        last = line

    return told
