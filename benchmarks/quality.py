"""Forecast quality on a fleet's own log: baselines, the paper's strategies, the product, and LightGBM offline.

``python -m benchmarks.quality --log alarms.csv.gz --targets 26,29,137 --out DIR``. Finished rows are kept in DIR.
LightGBM is what one would do instead: one model over all windows of all machines at once, with the same features,
the code as a category and without the machine; its thresholds are chosen as the product's are.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from forecasting.history import HistorySpec
from forecasting.network import Network
from service.experiment.evaluation import Forecasts, MachineHoldout, holdouts, score_forecasts
from service.experiment.files import read_log
from service.experiment.fleet import ExperimentFleet, SplitConfig, from_log
from service.experiment.results import Evaluation, RunScores, groups
from service.learning.calibration import thresholds
from service.learning.continual_update import predict, predict_horizons, update_model
from service.learning.memory import Memory
from service.learning.metrics import average_precision, average_score, brier_skill, forgetting, reliability
from service.learning.presets import PRESETS
from service.learning.torch_trainer import train
from service.learning.windows import FAR, MAIN, NEAR, UNKNOWN, Samples

BASELINES: Final = ("always yes", "persistence", "own recency")
PAPER: Final = ("finetune", "task-random", "reservoir", "ocdm", "dataset-ocdm", "bat-ocdm", "cumulative")
PRODUCT: Final = "product"
LIGHTGBM: Final = "LightGBM offline"
NAMES: Final = (*BASELINES, *(f"paper: {name}" for name in PAPER), PRODUCT, LIGHTGBM)
FIGURES: Final = ("F1", "rare F1", "AP", "cold AP", "Brier skill", "F_T", "cal. error")
_EIGHT_HOURS: Final = HistorySpec().decays.index(HistorySpec().decays[2])
_TREES: Final[Mapping[str, Any]] = {
    "objective": "binary",
    "learning_rate": 0.05,
    "num_leaves": 63,
    "min_data_in_leaf": 100,
    "feature_fraction": 0.5,
    "bagging_fraction": 0.5,
    "bagging_freq": 1,
    "lambda_l2": 5,
    "num_threads": 1,
    "verbose": -1,
}
_ROUNDS, _PATIENCE = 500, 30

Reals = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Exam:
    """The fleet, every machine's holdout set, and how it is scored."""

    fleet: ExperimentFleet
    sets: Sequence[MachineHoldout]
    evaluation: Evaluation

    @classmethod
    def build(cls, fleet: ExperimentFleet) -> "Exam":
        columns = fleet.vocabulary.target_columns
        sets = holdouts(fleet, history=True)
        earlier = [part.labels(columns) for one in fleet.machines for part in (one.train, one.calibration)]
        support = np.array([one.samples.labels.any(axis=0) for one in sets])
        return cls(fleet, sets, Evaluation(support, groups(np.concatenate(earlier).mean(axis=0))))

    def figures(self, scores: Sequence[RunScores], forecasts: Forecasts) -> dict[str, float]:
        """Return the figures of a run from its scores after each update and its last forecasts."""
        f1 = np.array([score.f1 for score in scores])
        precision = np.array([score.average_precision for score in scores])
        matrix = self.evaluation.matrix
        return {
            "F1": average_score(matrix(f1)),
            "rare F1": average_score(matrix(f1, "low")),
            "AP": average_score(matrix(precision)),
            "cold AP": self._cold_precision(forecasts),
            "Brier skill": average_score(np.array([scores[-1].brier_skill])),
            "F_T": forgetting(matrix(f1)) if len(scores) > 1 else float("nan"),
            "cal. error": scores[-1].reliability.expected_calibration_error,
        }

    def _cold_precision(self, forecasts: Forecasts) -> float:
        """Return average precision over the windows in which a code was not seen for 8 hours."""
        by_machine = []
        for one, said in zip(self.sets, forecasts, strict=True):
            history, labels = one.samples.history, one.samples.labels
            if history is None:
                raise ValueError("An event log is needed.")
            cold = history[:, :, _EIGHT_HOURS] < np.exp(-1)
            scores = [
                average_precision(labels[rows, code][:, None], said[rows, code][:, None])[0]
                for code, rows in enumerate(cold.T)
            ]
            by_machine.append(np.nanmean(scores))
        return float(np.mean(by_machine))


def baseline(exam: Exam, name: str) -> dict[str, Any]:
    """Score a baseline that learns nothing."""
    columns = exam.fleet.vocabulary.target_columns
    said: Forecasts
    if name == "always yes":
        said = [np.ones(one.samples.labels.shape) for one in exam.sets]
    elif name == "persistence":
        said = [(one.holdout.inputs(columns) > 0).astype(np.float64) for one in exam.fleet.machines]
    else:
        said = [one.holdout.code_recency(columns)[:, :, _EIGHT_HOURS] for one in exam.fleet.machines]
    return exam.figures([score_forecasts(exam.sets, said, 0.5)], said)


def learned(exam: Exam, preset: str, strategy: str, *, seed: int) -> dict[str, Any]:
    """Learn machine after machine and score every machine after each."""
    chosen = PRESETS[preset]
    config, rng = chosen.update_config(strategy, history=chosen.history), np.random.default_rng(seed)
    network: Network | None = None
    memory, scores, model, said = Memory(), [], None, []
    for machine in exam.fleet.machines:
        model, memory = update_model(
            machine,
            network=network,
            memory=memory,
            vocabulary=exam.fleet.vocabulary,
            config=config,
            train=lambda start, new, replay: train(start, new, replay=replay, spec=chosen.training, rng=rng),
            rng=rng,
        )
        network = model.network
        said = [predict(model, one.samples) for one in exam.sets]
        scores.append(score_forecasts(exam.sets, said, model.thresholds))
    figures: dict[str, Any] = exam.figures(scores, said)
    horizons = [predict_horizons(model, one.samples) for one in exam.sets] if model else []
    by_horizon = [one for one in horizons if one is not None]
    return figures | ({"horizons": _by_horizon(exam, by_horizon)} if by_horizon else {})


def _by_horizon(exam: Exam, said: Sequence[Reals]) -> dict[str, dict[str, float]]:
    """Return average precision, Brier skill and calibration error of each horizon."""
    columns = exam.fleet.vocabulary.target_columns
    result = {}
    for place, (name, least) in enumerate({"near": NEAR, "main": MAIN, "far": FAR}.items()):
        precision, skill, outcomes, forecasts = [], [], [], []
        for machine, one, predicted in zip(exam.fleet.machines, exam.sets, said, strict=True):
            known, within = _known(one.samples.within)
            labels, forecast = within >= least, predicted[known, :, place]
            before = [_known(part.horizons(columns))[1] for part in (machine.train, machine.calibration)]
            rate = (np.concatenate(before) >= least).mean(axis=0)
            precision.append(np.nanmean(average_precision(labels, forecast)))
            skill.append(brier_skill(labels, forecast, rate))
            outcomes.append(labels)
            forecasts.append(forecast)
        error = reliability(np.concatenate(outcomes), np.concatenate(forecasts)).expected_calibration_error
        result[name] = {
            "AP": float(np.mean(precision)),
            "Brier skill": float(np.mean(skill)),
            "cal. error": error,
        }
    return result


def _known(within: NDArray[np.uint8] | None) -> tuple[NDArray[np.bool_], NDArray[np.uint8]]:
    """Return the rows whose far horizon is known, and in which horizon each code came first in them."""
    if within is None:
        raise ValueError("An event log is needed.")
    known = ~(within == UNKNOWN).any(axis=1)
    return known, within[known]


def trees(exam: Exam, *, seed: int) -> dict[str, Any]:
    """Score LightGBM; early stopping and thresholds use the windows that the product calibrates with."""
    import lightgbm  # noqa: PLC0415 - of the development extra

    def samples(part: str) -> list[Samples]:
        windows = [getattr(machine, part) for machine in exam.fleet.machines]
        return [Samples.from_windows(one, exam.fleet.vocabulary, history=True) for one in windows]

    training, calibration = samples("train"), samples("calibration")
    (x, y), (x_check, y_check) = (_rows(training), _rows(calibration))
    data = lightgbm.Dataset(x, y, categorical_feature=[x.shape[1] - 1])
    model = lightgbm.train(
        {**_TREES, "seed": seed},
        data,
        _ROUNDS,
        valid_sets=[lightgbm.Dataset(x_check, y_check, reference=data)],
        callbacks=[lightgbm.early_stopping(_PATIENCE, verbose=False)],
    )

    def predicted(part: Samples) -> NDArray[np.float32]:
        flat = np.asarray(model.predict(_rows([part])[0]), dtype=np.float32)
        return flat.reshape(part.labels.shape)

    checks = [predicted(part) for part in calibration]
    expected = [(said + part.labels) / 2 for said, part in zip(checks, calibration, strict=True)]
    said = [predicted(one.samples) for one in exam.sets]
    return exam.figures([score_forecasts(exam.sets, said, thresholds(checks, expected))], said)


def _rows(parts: Sequence[Samples]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return a row for each window and code: the code's history, all shares, and the code."""
    tables = []
    for part in parts:
        count, codes = part.labels.shape
        history = np.asarray(part.history, dtype=np.float32).reshape(count * codes, -1)
        code = np.tile(np.arange(codes, dtype=np.float32), count)[:, None]
        tables.append(np.concatenate([history, np.repeat(part.inputs, codes, axis=0), code], axis=1))
    return np.concatenate(tables), np.concatenate([part.labels.ravel() for part in parts])


def _results(exam: Exam, name: str, out: Path, seeds: int) -> Iterator[dict[str, Any]]:
    for seed in range(1 if name in BASELINES else seeds):
        file = out / f"{name.replace(': ', '-').replace(' ', '-')}-{seed}.json"
        if not file.exists():
            if name in BASELINES:
                result = baseline(exam, name)
            elif name == LIGHTGBM:
                result = trees(exam, seed=seed)
            else:
                preset, _, strategy = name.rpartition(": ")
                result = learned(exam, preset or PRODUCT, strategy if preset else "bat-ocdm", seed=seed)
            file.write_text(json.dumps(result))
        yield json.loads(file.read_text())


def main() -> None:
    """Measure the rows asked for, and show them as tables."""
    asked = _arguments()
    machines = tuple(asked.machines.split(",")) if asked.machines else None
    targets = tuple(int(code) for code in asked.targets.split(","))
    cut = SplitConfig(targets, machines, PRESETS[PRODUCT].calibration, history=HistorySpec())
    exam = Exam.build(from_log(read_log(asked.log), cut))
    asked.out.mkdir(parents=True, exist_ok=True)
    table = Table("forecaster", *FIGURES)
    horizons = Table("product, horizon", "AP", "Brier skill", "cal. error")
    for name in asked.only or NAMES:
        results = list(_results(exam, name, asked.out, asked.seeds))
        table.add_row(name, *(_shown([result[figure] for result in results]) for figure in FIGURES))
        for horizon in results[0].get("horizons", {}):
            rows = [result["horizons"][horizon] for result in results]
            horizons.add_row(horizon, *(_shown([row[figure] for row in rows]) for figure in rows[0]))
    Console(width=140).print(table, horizons)


def _shown(values: Sequence[float]) -> str:
    if np.isnan(values).any():
        return ""
    spread = f" ±{np.std(values):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{spread}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log", type=Path, required=True, help="timestamp,alarm,serial as .csv or .csv.gz")
    parser.add_argument("--targets", required=True, help="codes to forecast, separated by commas")
    parser.add_argument("--machines", help="serials in the order to learn them")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True, help="where finished rows are kept")
    parser.add_argument("--only", nargs="*", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    return parser.parse_args()


if __name__ == "__main__":
    main()
