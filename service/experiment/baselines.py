"""Experiment, second step: what needs no learning, shown beside every result so that nobody is fooled.

A strategy that does not beat these rows is of no use, whatever its F1.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import numpy as np

from forecasting.history import HistorySpec
from service.experiment.exam import Exam, Forecasts, marked
from service.experiment.fleet import Fleet
from service.experiment.results import Run

_RECENT: Final = timedelta(hours=8)


def baselines(fleet: Fleet, papers: Sequence[Exam]) -> list[Run]:
    """Return a run of one update for each forecaster that has nothing to learn.

    Always yes; persistence, which expects what the evidence holds; the machine's base rate so far; and, where
    the log tells when, own recency: exp(-h / 8) for a code last seen h hours ago.
    """
    columns = fleet.vocabulary.target_columns
    windows = [machine.holdout for machine in fleet.machines]
    said: dict[str, Forecasts] = {
        "always yes": [np.ones(exam.samples.labels.shape) for exam in papers],
        "persistence": [(part.inputs(columns) > 0).astype(np.float64) for part in windows],
        "base rate": [np.broadcast_to(exam.base_rate, exam.samples.labels.shape) for exam in papers],
    }
    if fleet.has_history:
        place = HistorySpec().decays.index(_RECENT)
        said["own recency"] = [part.code_recency(columns)[:, :, place] for part in windows]
    return [Run.of(name, 0, [marked(papers, forecasts, 0.5)]) for name, forecasts in said.items()]
