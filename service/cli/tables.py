"""What a command lists, readable on a narrow terminal: no word of it is broken, least of all an id."""

from collections.abc import Sequence
from datetime import UTC, datetime

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from wire.terminal import wrap_labelled

_BESIDE_A_CELL, _AT_THE_END = 3, 1  # characters of the frame
_INDENT = "  "

Row = Sequence[str]


def show(titles: Sequence[str], rows: Sequence[Row]) -> None:
    """Print rows as a table; where it does not fit, print each row as a block that begins with its first cell."""
    console = Console()
    titles, rows = _without_empty_columns(titles, rows)
    widths = _widths(titles, rows, console.width)
    if widths is None:
        for row in rows:
            typer.echo(_block(titles, row, console.width))
        return
    table = Table()
    for title, width in zip(titles, widths, strict=True):
        table.add_column(title, width=width)
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def moment(at: datetime | None) -> str:
    """Write a time in UTC, to the second and in two words; "never" if there is none."""
    return "never" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"


def _without_empty_columns(titles: Sequence[str], rows: Sequence[Row]) -> tuple[Sequence[str], Sequence[Row]]:
    kept = [place for place in range(len(titles)) if not rows or any(row[place] for row in rows)]
    return [titles[place] for place in kept], [[row[place] for place in kept] for row in rows]


def _widths(titles: Sequence[str], rows: Sequence[Row], room: int) -> list[int] | None:
    """Return how wide columns are, each at least as its longest word; None if there is no room for that."""
    columns = list(zip(titles, *rows, strict=True))
    least = [max(cell_len(word) for cell in column for word in [*cell.split(), ""]) for column in columns]
    widest = [max(cell_len(cell) for cell in column) for column in columns]
    left = room - _AT_THE_END - sum(_BESIDE_A_CELL + width for width in least)
    if left < 0:
        return None
    wanted = sum(widest) - sum(least)
    if wanted <= left:
        return widest
    return [few + (many - few) * left // wanted for few, many in zip(least, widest, strict=True)]


def _block(titles: Sequence[str], row: Row, room: int) -> str:
    head, *cells = row
    margin = max(len(title) for title in titles) + 2 * len(_INDENT)
    lines = [f"{titles[0]} {head}"]
    for title, cell in zip(titles[1:], cells, strict=True):
        if cell:
            begins = f"{_INDENT}{title}".ljust(margin)
            lines.append(wrap_labelled(begins, cell, room))
    return "\n".join(lines)
