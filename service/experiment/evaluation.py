"""Score forecasts on every machine's holdout set, and score the baselines that need no training.

A strategy that does not beat the baselines is of no use, whatever its F1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from forecasting.history import HistorySpec
from service.experiment.fleet import ExperimentFleet
from service.experiment.notification_figures import notification_figures
from service.experiment.results import Run, RunScores
from service.learning.metrics import average_precision, brier_skill, f1, reliability
from service.learning.windows import Samples

Reals = NDArray[np.float64]
Forecasts = Sequence[NDArray[np.floating]]

_RECENT: Final = timedelta(hours=8)


@dataclass(frozen=True, eq=False)
class MachineHoldout:
    """A machine's last windows as samples, the base rate of each code in its earlier windows, and their times.

    Windows that were not cut from an event log have no times.
    """

    samples: Samples
    base_rate: Reals
    at: NDArray[np.int64] | None = None


def holdouts(fleet: ExperimentFleet, *, history: bool) -> tuple[MachineHoldout, ...]:
    """Return the holdout set of each machine."""
    columns = fleet.vocabulary.target_columns
    return tuple(
        MachineHoldout(
            Samples.from_windows(machine.holdout, fleet.vocabulary, history=history),
            np.concatenate([machine.train.labels(columns), machine.calibration.labels(columns)]).mean(axis=0),
            machine.holdout.at if fleet.has_history else None,
        )
        for machine in fleet.machines
    )


def score_forecasts(
    holdout_sets: Sequence[MachineHoldout], forecasts: Forecasts, thresholds: NDArray[np.floating] | float
) -> RunScores:
    """Score one forecaster's probabilities on each holdout set; a code is predicted from its threshold on."""
    labels = [holdout.samples.labels for holdout in holdout_sets]
    pairs = list(zip(labels, forecasts, strict=True))
    rates = [holdout.base_rate for holdout in holdout_sets]
    return RunScores(
        f1=np.array([f1(label, predicted >= thresholds) for label, predicted in pairs]),
        average_precision=np.array([average_precision(label, predicted) for label, predicted in pairs]),
        brier_skill=np.array(
            [brier_skill(label, predicted, rate) for (label, predicted), rate in zip(pairs, rates, strict=True)]
        ),
        reliability=reliability(np.concatenate(labels), np.concatenate(list(forecasts))),
        notifications=notification_figures(holdout_sets, forecasts),
    )


def baselines(fleet: ExperimentFleet, holdout_sets: Sequence[MachineHoldout]) -> list[Run]:
    """Return a run of one update for each baseline.

    Always yes; persistence, which predicts the codes of the input window; the machine's base rate; and, if the log
    has times, own recency: exp(-h / 8) for a code last seen h hours ago.
    """
    columns = fleet.vocabulary.target_columns
    windows = [machine.holdout for machine in fleet.machines]
    predicted: dict[str, Forecasts] = {
        "always yes": [np.ones(holdout.samples.labels.shape) for holdout in holdout_sets],
        "persistence": [(part.inputs(columns) > 0).astype(np.float64) for part in windows],
        "base rate": [
            np.broadcast_to(holdout.base_rate, holdout.samples.labels.shape) for holdout in holdout_sets
        ],
    }
    if fleet.has_history:
        place = HistorySpec().decays.index(_RECENT)
        predicted["own recency"] = [part.code_recency(columns)[:, :, place] for part in windows]
    return [
        Run.of(name, 0, [score_forecasts(holdout_sets, forecasts, 0.5)]) for name, forecasts in predicted.items()
    ]
