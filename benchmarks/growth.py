"""How ingest, forecasts and enrolment grow with the events stored, the machines and the codes.

``python -m benchmarks.growth`` measures what ``docs/research/growth/figures.json`` does not hold yet, point by
point, and draws ``docs/research/growth.md`` and its pictures from it; an interrupted run continues where it was.
``--again`` measures everything anew, ``--only machines=1000`` one point.
"""

import argparse
import json
from pathlib import Path
from time import monotonic
from typing import Any

from rich.console import Console

from benchmarks.enrolment_scaling import enrolment_point
from benchmarks.growth_page import write_page
from benchmarks.growth_points import serving_point
from benchmarks.servers import REPOSITORY
from benchmarks.synthetic_plant import ALARMS_A_DAY, CODES, Plant

AXES = {
    "events": (100_000, 1_000_000, 10_000_000),
    "machines": (10, 100, 1000, 10_000),
    "codes": (50, CODES, 500, 2000),
}
_MACHINES = 100
_FIGURES = REPOSITORY / "docs" / "research" / "growth" / "figures.json"


def plant_at(axis: str, size: int) -> Plant:
    """Return the plant of a point: ordinary, of a hundred machines, but for the axis it lies on."""
    if axis == "events":
        return Plant(_MACHINES, days=size / _MACHINES / ALARMS_A_DAY)
    if axis == "machines":
        return Plant(size, days=7)
    return Plant(_MACHINES, codes=size)


def main() -> None:
    """Measure what is missing, keeping every point as soon as it is there, and draw."""
    options = _options()
    file: Path = options.json
    kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for axis, sizes in AXES.items():
        for size in sizes:
            name = f"{axis}={size}"
            if options.only and name not in options.only:
                continue
            if name in kept and not (options.again or options.only):
                continue
            began = monotonic()
            plant = plant_at(axis, size)
            point = serving_point(plant) | {"enrolment": enrolment_point(plant)}
            kept[name] = point | {"axis": axis, "size": size, "seconds": round(monotonic() - began, 1)}
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
            Console(stderr=True).print(f"{name}: {kept[name]['seconds']:.0f} s", highlight=False)
    if kept and not options.no_page:
        write_page(kept, file.parent)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, default=_FIGURES, metavar="FILE", help="where figures are kept")
    parser.add_argument("--only", nargs="*", metavar="AXIS=SIZE", help="measure these points, anew if need be")
    parser.add_argument("--again", action="store_true", help="measure all points anew")
    parser.add_argument("--no-page", action="store_true", help="measure only; draw nothing")
    return parser.parse_args()


if __name__ == "__main__":
    main()
