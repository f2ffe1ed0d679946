"""What each ingredient of the product preset is worth: BAT-OCDM with one of them changed at a time.

On a fleet's own log, for example
``python -m benchmarks.ablation --log alarms.csv.gz --targets 26,29,137 --out DIR --only "no averaging"``.
Finished runs are kept in DIR and not run again. It measures quality, and takes minutes for each ingredient.
"""

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from forecasting.history import HistorySpec
from service.experiment.comparison import ComparisonPlan, compare, fingerprint
from service.experiment.files import read_log
from service.experiment.fleet import SplitConfig, from_log
from service.experiment.results import Figure, ResultRow
from service.learning.presets import PRESETS, Preset
from service.learning.strategies import BatOcdm, Strategy, TaskRandom

NAME: Final = "bat-ocdm"


def _preset(**changes: Any) -> Callable[[Preset], Preset]:
    return lambda preset: replace(preset, **changes)


def _training(**changes: Any) -> Callable[[Preset], Preset]:
    return lambda preset: replace(preset, training=replace(preset.training, **changes))


def _remembering(strategy: Strategy) -> Callable[[Preset], Preset]:
    return lambda preset: replace(preset, strategies={**preset.strategies, NAME: strategy})


VARIANTS: Final[Mapping[str, Callable[[Preset], Preset]]] = {
    "product": _preset(),
    "no own history": _preset(history=False),
    "no averaging": _preset(averaging=False),
    "no unbalancing": _preset(unbalancing=0.0),
    "no curves": _preset(curves="none"),
    "one curve for all codes": _preset(curves="shared"),
    "thresholds of a half": _preset(thresholds=False),
    "focal loss": _training(loss="focal"),
    "chosen from the whole task": _remembering(BatOcdm(batch=None)),
    "random memory": _remembering(TaskRandom()),
    "no first steps": _training(first_steps=0),
}


def main() -> None:
    """Run the ingredients asked for, and show them as a table."""
    asked = _arguments()
    least, targets = asked.min_alarms, tuple(int(code) for code in asked.targets.split(","))
    machines = tuple(asked.machines.split(",")) if asked.machines else None
    cut = SplitConfig(targets, machines, PRESETS["product"].calibration, least, least, HistorySpec())
    fleet, data = from_log(read_log(asked.log), cut), asked.log.read_bytes()
    plan = ComparisonPlan("product", (NAME,), asked.memory, asked.seeds)
    laid = Table("ingredient", "F1", "F1 low", "precision", "Brier skill", "cal. error", "F_T")
    for name in asked.only or VARIANTS:
        preset = VARIANTS[name](PRESETS["product"])
        compared = compare(
            fleet,
            plan,
            preset=preset,
            training=preset.training,
            store=asked.out / fingerprint(data, cut, plan, preset, preset.training),
            clock=time.perf_counter,
            on_progress=lambda *_: None,
        )
        laid.add_row(name, *_shown(compared.rows[-1]))
    Console().print(laid)


def _shown(line: ResultRow) -> list[str]:
    figures: list[Figure] = [
        line.macro_f1["total"],
        line.macro_f1["low"],
        line.average_precision,
        line.brier_skill,
        line.calibration_error,
        line.forgetting["total"],
    ]
    return [f"{figure.mean:.3f} ±{figure.spread:.3f}" for figure in figures]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log", type=Path, required=True, help="timestamp,alarm,serial as .csv or .csv.gz")
    parser.add_argument("--targets", required=True, help="codes to forecast, separated by commas")
    parser.add_argument("--machines", help="serials in the order to learn them")
    parser.add_argument("--min-alarms", type=int, default=0, help="fewest raw alarms in evidence and in horizon")
    parser.add_argument("--memory", type=int, help="windows kept in all; the preset's by default")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True, help="where finished runs are kept")
    parser.add_argument("--only", nargs="*", choices=VARIANTS, metavar="NAME", help=", ".join(VARIANTS))
    return parser.parse_args()


if __name__ == "__main__":
    main()
