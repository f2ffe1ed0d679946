"""The rows as a live table and as Markdown."""

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from tests.faults.runner import Row

_TITLES = ("fault", "runs", "events", "lost", "duplicated", "slowest recovery")
_COLOURS = {"waits": "dim", "plays": "cyan", "kept": "green", "failed": "red", "skipped": "yellow"}


def live_table(rows: Sequence[Row]) -> Table:
    """Lay the rows out for people who watch."""
    table = Table(title="Faults", title_justify="left")
    for place, title in enumerate(_TITLES):
        table.add_column(title, justify="left" if place == 0 else "right")
    table.add_column("promise", overflow="fold")
    for row in rows:
        word = f"[{_COLOURS[row.state]}]{row.state}[/]" + (f": {escape(row.error)}" if row.error else "")
        table.add_row(*_cells(row), word)
    return table


def markdown(rows: Sequence[Row]) -> str:
    """Write the rows as a Markdown table."""
    lines = [f"| {' | '.join(_TITLES)} | promise |", f"|{'---|' * (len(_TITLES) + 1)}"]
    for row in rows:
        why = f": {row.error.splitlines()[0]}" if row.error else ""
        lines.append(f"| {' | '.join(_cells(row))} | {row.state}{why} |")
    return "\n".join(lines) + "\n"


def _cells(row: Row) -> list[str]:
    slowest = "" if row.slowest is None else f"{row.slowest:.1f} s"
    runs = f"{row.runs} of {row.effort.runs}" if row.state == "plays" else str(row.runs)
    counts = (row.tally.events, row.tally.lost, row.tally.duplicated)
    return [row.fault.name, runs, *(f"{count:,}" for count in counts), slowest]
