"""Experiment, second step: every machine's exam, and the marks a forecaster gets in all of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.experiment.fleet import Fleet
from service.learning.metrics import Reliability, average_precision, brier_skill, f1, reliability
from service.learning.windows import Samples

Reals = NDArray[np.float64]
Forecasts = Sequence[NDArray[np.floating]]


@dataclass(frozen=True, eq=False)
class Exam:
    """A machine's last windows as samples, and how often each code came in its windows before."""

    samples: Samples
    base_rate: Reals


@dataclass(frozen=True, eq=False)
class Marks:
    """Machines by codes of F1 and average precision, Brier skill by machine, and all forecasts' reliability."""

    f1: Reals
    average_precision: Reals
    brier_skill: Reals
    reliability: Reliability


def exams(fleet: Fleet, *, history: bool) -> tuple[Exam, ...]:
    """Return the exam of each machine."""
    columns = fleet.vocabulary.target_columns
    return tuple(
        Exam(
            Samples.from_windows(machine.holdout, fleet.vocabulary, history=history),
            np.concatenate([machine.train.labels(columns), machine.calibration.labels(columns)]).mean(axis=0),
        )
        for machine in fleet.machines
    )


def marked(papers: Sequence[Exam], forecasts: Forecasts, thresholds: NDArray[np.floating] | float) -> Marks:
    """Mark one forecaster's probabilities for each exam; a code is announced from its threshold on."""
    pairs = list(zip(papers, forecasts, strict=True))
    return Marks(
        f1=np.array([f1(exam.samples.labels, said >= thresholds) for exam, said in pairs]),
        average_precision=np.array([average_precision(exam.samples.labels, said) for exam, said in pairs]),
        brier_skill=np.array([brier_skill(exam.samples.labels, said, exam.base_rate) for exam, said in pairs]),
        reliability=reliability(
            np.concatenate([exam.samples.labels for exam in papers]), np.concatenate(list(forecasts))
        ),
    )
