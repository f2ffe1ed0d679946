"""Figures to a table and to JSON, and the command line that every benchmark shares."""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

ROUNDS = 3  # at least, or a median would say nothing


@dataclass(frozen=True)
class Figure:
    """One path beside its limit: medians over the rounds, in ``unit``.

    A rate must reach at least ``goal`` times its limit; a time or a size (``at_most``) may take no more. What was
    measured ``beside`` it is reported without a limit.
    """

    name: str
    against: str
    unit: str
    limits: Sequence[float]
    ours: Sequence[float]
    goal: float
    at_most: bool = False
    beside: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def ratios(self) -> list[float]:
        """Ours over the limit, round by round, so that slow drift cancels; a fixed limit serves every round."""
        limits = self.limits if len(self.limits) > 1 else [*self.limits] * len(self.ours)
        return [mine / limit for mine, limit in zip(self.ours, limits, strict=True)]

    @property
    def ratio(self) -> float:
        """The median of the rounds' ratios."""
        return median(self.ratios)

    @property
    def met(self) -> bool:
        """Whether the goal is reached."""
        return self.ratio <= self.goal if self.at_most else self.ratio >= self.goal

    def row(self) -> dict[str, Any]:
        """Return the figure as JSON has it."""
        return {
            "name": self.name,
            "against": self.against,
            "unit": self.unit,
            "limit": median(self.limits),
            "ours": median(self.ours),
            "rounds": len(self.ours),
            "ratio": round(self.ratio, 4),
            "ratios": [round(ratio, 4) for ratio in self.ratios],
            "goal": self.goal,
            "goal_is": "at most" if self.at_most else "at least",
            "met": self.met,
            "beside": {name: round(median(values), 3) for name, values in self.beside.items()},
        }


def markdown(figures: Sequence[Figure]) -> str:
    """Return the figures as a Markdown table."""
    lines = [
        "| path | compared with | ratio (from … to) | goal | met | also measured |",
        "|---|---|---|---|---|---|",
    ]
    for one in figures:
        ratio = f"{_short(one.ratio)} ({_short(min(one.ratios))} … {_short(max(one.ratios))})"
        goal = f"{'≤' if one.at_most else '≥'} {one.goal:g}"
        beside = ", ".join(f"{name} {_short(median(values))}" for name, values in one.beside.items())
        cells = (one.name, one.against, ratio, goal, "yes" if one.met else "**no**", beside)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def table(title: str, figures: Sequence[Figure]) -> Table:
    """Lay figures out for people."""
    laid = Table("path", "compared with", "unit", title=title, title_justify="left")
    for name in ("limit", "ours", "ratio", "from … to", "goal"):
        laid.add_column(name, justify="right")
    laid.add_column("met")
    if any(one.beside for one in figures):
        laid.add_column("beside")
    for one in figures:
        beside = [", ".join(f"{name} {median(values):.3g}" for name, values in one.beside.items())]
        laid.add_row(
            one.name,
            one.against,
            one.unit,
            _number(median(one.limits)),
            _number(median(one.ours)),
            f"{one.ratio:.2f}",
            f"{min(one.ratios):.2f} … {max(one.ratios):.2f}",
            f"{'≤' if one.at_most else '≥'} {one.goal:g}",
            "[green]yes[/]" if one.met else "[red]no[/]",
            *(beside if one.beside else []),
        )
    return laid


def run(about: str, measure: Callable[[int], list[Figure]], *, rounds: int) -> None:
    """Read the command line, measure, print, and write JSON if asked to.

    A missed goal is printed, not an exit code: two noisy cores must not fail a build.
    """
    title = about.splitlines()[0]
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there as well")
    parser.add_argument("--rounds", type=rounds_of, default=rounds, help=f"at least 3; {rounds} unless given")
    options = parser.parse_args()
    tell(title, measure(options.rounds), options.json)


def tell(title: str, figures: Sequence[Figure], json_file: Path | None) -> None:
    """Print figures, and write them to a file if there is one."""
    Console().print(table(title, figures))
    if json_file:
        json_file.write_text(json.dumps([one.row() for one in figures], indent=2) + "\n", encoding="utf-8")


def rounds_of(text: str) -> int:
    """Read a number of rounds from the command line."""
    if not text.isdigit() or not ROUNDS <= int(text) <= 100:
        raise argparse.ArgumentTypeError(f"rounds are a whole number from {ROUNDS} to 100")
    return int(text)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}" if value < 1 else f"{value:.3g}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
