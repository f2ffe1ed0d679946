"""Every path beside its limit: measures the rows of the table in docs/research/performance.md and writes it.

``python -m benchmarks`` takes about ten minutes on an otherwise quiet machine. ``--only ingest,start`` measures
some of them and leaves the page as it is. Each can be run alone as well: ``python -m benchmarks.ingest``.
"""

import argparse
import time
from importlib import import_module
from pathlib import Path

from rich.console import Console

from benchmarks.report import ROUNDS, Figure, markdown, rounds_of, tell
from benchmarks.servers import REPOSITORY

MEASURED = ("ingest", "history", "rest", "refresh", "memory", "learning", "start")
_PAGE = REPOSITORY / "docs" / "research" / "performance.md"
_BEGIN, _END = "<!-- benchmarks: written by python -m benchmarks -->", "<!-- benchmarks: end -->"


def main() -> None:
    """Measure, print, and write what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there as well")
    parser.add_argument("--rounds", type=rounds_of, default=ROUNDS, help=f"{ROUNDS} at least, and unless given")
    parser.add_argument("--only", type=_some, default=MEASURED, metavar="NAMES", help=", ".join(MEASURED))
    options = parser.parse_args()
    figures = [figure for name in options.only for figure in _measured(name, options.rounds)]
    tell("As fast as one machine allows", figures, options.json)
    if options.only == MEASURED:
        _PAGE.write_text(with_table(_PAGE.read_text(encoding="utf-8"), figures), encoding="utf-8")


def with_table(page: str, figures: list[Figure]) -> str:
    """Return the page with a table of these figures."""
    before, begin, rest = page.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"The page has no place for the table; it stands between {_BEGIN} and {_END}.")
    return f"{before}{begin}\n{markdown(figures)}\n{end}{after}"


def _measured(name: str, rounds: int) -> list[Figure]:
    console = Console(stderr=True)
    console.print(f"measuring {name} …", highlight=False)
    started = time.monotonic()
    figures: list[Figure] = import_module(f"benchmarks.{name}").measure(rounds)
    for one in figures:
        console.print(f"  {one.name}: {one.ratio:.3g} times its limit", highlight=False)
    console.print(f"  in {time.monotonic() - started:.0f} s", highlight=False)
    return figures


def _some(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if unknown := set(names) - set(MEASURED):
        raise argparse.ArgumentTypeError(f"there is no {', '.join(unknown)}; choose from {', '.join(MEASURED)}")
    return names


if __name__ == "__main__":
    main()
