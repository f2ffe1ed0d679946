"""Run the experiment: from a file and options to a comparison, its report and its rows."""

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from forecasting.history import HistorySpec
from service.errors import InputRejected
from service.experiment.comparison import Comparison, ComparisonPlan, compare, fingerprint
from service.experiment.files import read_log, read_windows
from service.experiment.fleet import ExperimentFleet, SplitConfig, from_log, from_windows
from service.experiment.report import report
from service.experiment.run import RunProgress
from service.experiment.table import json_rows
from service.learning.presets import PRESETS, Preset
from service.learning.strategies import STRATEGIES


@dataclass(frozen=True)
class ExperimentOptions:
    """What is asked for; ``None`` leaves the choice to the preset, or takes all machines."""

    out: Path
    targets: tuple[int, ...]
    windows: Path | None = None
    log: Path | None = None
    machines: tuple[str, ...] | None = None
    strategies: tuple[str, ...] = tuple(STRATEGIES)
    preset: str = "product"
    memory: int | None = None
    epochs: int | None = None
    seeds: int = 3
    min_in: int | None = None
    min_out: int | None = None


def experiment(options: ExperimentOptions, *, screen: Console) -> Comparison:
    """Compare the strategies, write ``report.html`` and ``rows.json`` to ``out``, and return the comparison."""
    if options.preset not in PRESETS:
        raise InputRejected(f"There is no preset {options.preset}; there are {' and '.join(PRESETS)}.")
    preset = PRESETS[options.preset]
    unknown = sorted(set(options.strategies) - set(preset.strategies))
    if unknown:
        raise InputRejected(
            f"There is no strategy {', '.join(unknown)}; there are {', '.join(preset.strategies)}."
        )
    plan = ComparisonPlan(options.preset, options.strategies, options.memory, options.seeds)
    training = preset.training if options.epochs is None else replace(preset.training, epochs=options.epochs)
    file = _file(options)
    cut = _cut(options, preset)
    fleet = _fleet(options, cut)
    if preset.history and not fleet.has_history:
        screen.print("The windows file does not tell when alarms came, so each code's own history is left out.")
    if fleet.skipped:
        screen.print(f"Too few windows to learn from, left out: machine {', '.join(fleet.skipped)}.")
    store = options.out / "runs" / fingerprint(file.read_bytes(), cut, plan, preset, training)
    with _progress(screen) as bar:
        task = bar.add_task("", total=len(options.strategies) * options.seeds * len(fleet.machines))
        done: dict[tuple[str, int], int] = {}

        def on_progress(name: str, seed: int, stage: RunProgress) -> None:
            done[name, seed] = stage.machine - (stage.epoch < stage.epochs)
            finished = sum(done.values())
            bar.update(task, completed=finished, description=f"{name}, seed {seed}, epoch {stage.epoch}")

        comparison = compare(
            fleet,
            plan,
            preset=preset,
            training=training,
            store=store,
            clock=time.perf_counter,
            on_progress=on_progress,
        )
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "report.html").write_text(report(comparison), encoding="utf-8")
    rows = json_rows(comparison.rows, preset=options.preset)
    (options.out / "rows.json").write_text(json.dumps(rows, indent=1))
    return comparison


def _file(options: ExperimentOptions) -> Path:
    file = options.windows or options.log
    if file is None or (options.windows and options.log):
        raise InputRejected("Give either --windows FILE.npz or --log FILE.csv, and not both.")
    if not file.is_file():
        raise InputRejected(f"There is no file {file}.")
    return file


def _cut(options: ExperimentOptions, preset: Preset) -> SplitConfig:
    return SplitConfig(
        targets=options.targets,
        machines=options.machines,
        calibration=preset.calibration,
        min_in=preset.min_alarms if options.min_in is None else options.min_in,
        min_out=preset.min_alarms if options.min_out is None else options.min_out,
        history=HistorySpec(),
    )


def _fleet(options: ExperimentOptions, cut: SplitConfig) -> ExperimentFleet:
    if options.windows is not None:
        return from_windows(*read_windows(options.windows), cut)
    return from_log(read_log(_file(options)), cut)


def _progress(screen: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=screen
    )
