"""What a forecaster is worth to people: notifications, onsets announced, and scores on cold codes."""

from collections.abc import Sequence
from datetime import timedelta
from math import nan
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from forecasting.window import WindowSpec
from service.learning.dataset import STEP
from service.learning.metrics import average_precision
from service.scoring.notification_scores import (
    ANNOUNCED,
    NOTIFICATION_WIDTH,
    ONSETS,
    RIGHT,
    SENT,
    cold_pairs,
    median_lead_minutes,
    notification_sums,
)

if TYPE_CHECKING:
    from service.experiment.evaluation import MachineHoldout

FIGURES: Final = (
    "notifications_per_machine_day",
    "notification_precision",
    "onsets_announced",
    "median_lead_minutes",
    "cold_average_precision",
    "cold_brier_skill",
)
_HORIZON_US: Final = WindowSpec().horizon // timedelta(microseconds=1)


def notification_figures(
    holdout_sets: Sequence["MachineHoldout"], forecasts: Sequence[NDArray[np.floating]]
) -> dict[str, float]:
    """Return the figures over all holdout sets; NaN where windows have no times or nothing was counted.

    Notifications and onsets are pooled; scores on cold codes, which had not occurred for a horizon, are means over
    machines.
    """
    sums, days = np.zeros(NOTIFICATION_WIDTH), 0.0
    precisions, skills = [], []
    for holdout, predicted in zip(holdout_sets, forecasts, strict=True):
        if holdout.at is None:
            return dict.fromkeys(FIGURES, nan)
        labels = holdout.samples.labels
        every = np.ones_like(labels)
        sums += notification_sums(holdout.at, predicted, labels, every, _HORIZON_US).sum(axis=1)
        days += len(holdout.at) * (STEP / timedelta(days=1))
        cold = cold_pairs(holdout.at, labels, every, _HORIZON_US)
        by_code = [
            average_precision(labels[rows, code, None], predicted[rows, code, None])[0]
            for code, rows in enumerate(cold.T)
            if labels[rows, code].any()
        ]
        own, base = (float(np.sum(((p - labels) ** 2)[cold])) for p in (predicted, holdout.base_rate))
        precisions += [float(np.mean(by_code))] if by_code else []
        skills += [1 - own / base] if base else []
    lead = median_lead_minutes(sums)
    return {
        "notifications_per_machine_day": _ratio(sums[SENT], days),
        "notification_precision": _ratio(sums[RIGHT], sums[SENT]),
        "onsets_announced": _ratio(sums[ANNOUNCED], sums[ONSETS]),
        "median_lead_minutes": nan if lead is None else lead,
        "cold_average_precision": _ratio(sum(precisions), len(precisions)),
        "cold_brier_skill": _ratio(sum(skills), len(skills)),
    }


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else nan
