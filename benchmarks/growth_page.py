"""The figures of growth as a page: a table, and a picture for each path."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.curves import Panel, picture

Kept = Mapping[str, Mapping[str, Any]]

_AXES = ("events", "machines", "codes")
_STAGES = ("training", "exams", "memory")


@dataclass(frozen=True)
class _Path:
    """A path, its unit, and the lines of its picture; ``key`` is where its figures are kept."""

    key: str
    name: str
    unit: str
    lines: Mapping[str, Callable[[Mapping[str, Any]], float]]


_PATHS = (
    _Path(
        "ingest",
        "Ingest",
        "events/s",
        {"committed and acked": lambda p: p["ingest"]["ours"], "sqlite3 alone": lambda p: p["ingest"]["limit"]},
    ),
    _Path(
        "forecast",
        "One forecast over REST",
        "ms",
        {
            "as of an hour ago": lambda p: p["forecast"]["ours"],
            "an empty answer": lambda p: p["forecast"]["limit"],
        },
    ),
    _Path(
        "refresh",
        "Refresh of the whole fleet",
        "s",
        {
            "stored and published": lambda p: p["refresh"]["ours"],
            "one scan, one pass": lambda p: p["refresh"]["limit"],
        },
    ),
    _Path(
        "enrolment",
        "Enrolment",
        "s",
        {
            "total": lambda p: p["enrolment"]["whole"],
            "training": lambda p: p["enrolment"]["training"],
            "evaluation": lambda p: p["enrolment"]["exams"],
            "replay memory": lambda p: p["enrolment"]["memory"],
        },
    ),
)
_HEAD = """# Growth

How ingest, forecasts and enrolment grow, as `python -m benchmarks.growth` measures it on two shared cores with
SQLite. Each picture has one panel per axis; everything else is an ordinary plant: 100 machines with 46
alarms a day each, 154 codes of which every tenth is forecast, a month of alarms (a week on the axis of machines).
Axes are logarithmic. The page is written from [figures.json](growth/figures.json).

- **Ingest**: a backlog of 40,000 events of up to 100 machines, 20 per message, until the last one is acked.
  Compared with `sqlite3.executemany` of as many rows into an empty table of the same schema, `synchronous=FULL`.
- **One forecast**: over REST as of an hour ago, so that it is computed for each request. Compared with `/livez`.
- **Refresh**: from a moment of the grid until the forecasts of all machines are stored and published over MQTT.
  Compared with reading every machine's window from the index and one forward pass over all of them.
- **Enrolment**: of one more machine with 40 days of history, from the last byte of its history to the
  decision of the gate, and its parts. The other machines are copies of one that was trained; the replay memory
  has 2,000 windows, or 8 per machine.
"""


def write_page(kept: Kept, folder: Path) -> None:
    """Write the pictures into a folder and the page beside it."""
    parts = [_HEAD]
    for path in _PATHS:
        panels = [_panel(kept, axis, path) for axis in _AXES if any(one["axis"] == axis for one in kept.values())]
        drawn = picture(f"{path.name}, {path.unit}", path.unit, panels)
        (folder / f"{path.key}.svg").write_text(drawn, encoding="utf-8")
        parts.append(f"## {path.name}\n![{path.name}, {path.unit}](growth/{path.key}.svg)\n")
    parts.append("## Figures\n" + _table(kept))
    (folder.parent / "growth.md").write_text("\n".join(parts), encoding="utf-8")


def _panel(kept: Kept, axis: str, path: _Path) -> Panel:
    points = _on(kept, axis)
    lines = {name: [(one["size"], max(read(one), 1e-3)) for one in points] for name, read in path.lines.items()}
    return Panel(axis, lines)


def _on(kept: Kept, axis: str) -> list[Mapping[str, Any]]:
    return sorted((one for one in kept.values() if one["axis"] == axis), key=lambda one: int(one["size"]))


def _table(kept: Kept) -> str:
    head = (
        "| point | ingest, events/s (of sqlite3 alone) | forecast, ms | refresh, s (times its limit) "
        "| enrolment, s (training, evaluation, memory, rest) |\n|---|---|---|---|---|\n"
    )
    return head + "".join(_row(one) for axis in _AXES for one in _on(kept, axis))


def _row(one: Mapping[str, Any]) -> str:
    ingest, refresh = one["ingest"], one["refresh"]
    cells: Sequence[str] = (
        f"{one['size']:,} {one['axis']}",
        f"{ingest['ours']:,.0f} ({ingest['ours'] / ingest['limit']:.2f})",
        f"{one['forecast']['ours']:.1f}",
        f"{refresh['ours']:.2f} ({refresh['ours'] / refresh['limit']:.1f})",
        _learned(one["enrolment"]),
    )
    return f"| {' | '.join(cells)} |\n"


def _learned(parts: Mapping[str, float]) -> str:
    return f"{parts['whole']:.1f} ({', '.join(f'{parts[stage]:.1f}' for stage in (*_STAGES, 'rest'))})"
