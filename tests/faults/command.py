"""The command line of the suite: which rows, how hard, and where the table goes."""

import argparse
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.live import Live

from tests.faults.environment import FaultEnvironment
from tests.faults.matrix import FAULTS, Fault
from tests.faults.runner import Row, play
from tests.faults.table import live_table, markdown


def main(arguments: list[str] | None = None) -> int:
    """Play what was asked for; 0 if every promise was kept."""
    options = _parser().parse_args(arguments)
    chosen = _chosen(options.only, quick=not options.full)
    rows = [Row(fault, fault.full if options.full or fault.quick is None else fault.quick) for fault in chosen]
    console = Console(width=None if sys.stdout.isatty() else 140)
    with Live(live_table(rows), console=console, auto_refresh=False) as live:

        def played(row: Row) -> None:
            play(row, FaultEnvironment(options.seed), told=show)
            if not console.is_terminal:
                console.print(f"{row.fault.name}: {row.state}", highlight=False)

        def show() -> None:
            if console.is_terminal:
                live.update(live_table(rows), refresh=True)

        with ThreadPoolExecutor(options.jobs) as pool:
            for _ in pool.map(played, rows):
                show()
        live.update(live_table(rows), refresh=True)
    if options.json:
        options.json.write_text(json.dumps([row.figures() for row in rows], indent=2) + "\n", encoding="utf-8")
    if options.markdown:
        options.markdown.write_text(markdown(rows), encoding="utf-8")
    strict = bool(os.environ.get("CI"))  # where everything must be there, a row that cannot be played is a failure
    return int(any(row.failed or (strict and row.skipped) for row in rows))


def _chosen(only: list[str] | None, *, quick: bool) -> list[Fault]:
    if only:
        return [fault for name, fault in FAULTS.items() if any(part in name for part in only)]
    return [fault for fault in FAULTS.values() if fault.quick or not quick]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/faults", description=__doc__)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--quick", action="store_true", help="minutes, for every change; the default")
    how.add_argument("--full", action="store_true", help="hours, before a release")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there")
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="rows whose name contains this; repeatable"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the random moments")
    parser.add_argument("--jobs", type=int, default=3, help="rows run side by side; most of them wait")
    return parser
