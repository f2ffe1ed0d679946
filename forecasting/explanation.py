"""Beside the alarm arrow: why a forecast says what it says, against what it usually says of the same machine.

The machine's *usual* is the mean over past moments of what the model would have said at each of them. Every
part is in log-odds of the calibrated probability, the one people are shown, and for each target code the parts
sum to the difference between now and usual.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import numpy as np

from forecasting.attribution import Attribution, Reals, attribute
from forecasting.forecaster import Forecaster, Inputs, ObservedSeries
from forecasting.history import HistorySpec
from forecasting.network import Layer, Matrix, Network
from forecasting.window import WindowSpec

BASELINE_SPAN: Final = timedelta(days=28)
# No divisor of a day's hours or of a week's, so that no hour and no weekday counts more than another.
BASELINE_STEP: Final = timedelta(hours=11)


class HistoryParts(NamedTuple):
    """For each target: the parts of when it was last seen, of how regularly it comes, of its machine at large."""

    recency: Reals
    habit: Reals
    condition: Reals


@dataclass(frozen=True, eq=False)
class Explanation:
    """What moved the forecast of each target that was asked about.

    ``alarms`` is targets by input codes, the parts of each code's share of the evidence; ``history`` the parts
    of the past beyond that, which not every model reads. ``moments`` are those that the usual is the mean
    over; where there are none it is what the model says of a machine that was never heard.
    """

    probabilities: Matrix
    log_odds: Reals
    baseline_log_odds: Reals
    alarms: Reals
    history: HistoryParts | None
    shares: Reals
    baseline_shares: Reals
    moments: Sequence[datetime]

    @property
    def baseline_probabilities(self) -> Reals:
        """The probabilities of the usual log-odds."""
        return np.exp(-np.logaddexp(0.0, -self.baseline_log_odds))


def baseline_moments(since: datetime, at: datetime, spec: WindowSpec) -> list[datetime]:
    """Return the moments of the last 28 days by which half of the evidence window could have been heard."""
    back = (at - step * BASELINE_STEP for step in range(1, BASELINE_SPAN // BASELINE_STEP + 1))
    return [moment for moment in back if moment >= since + spec.lookback / 2]


def explain(model: Forecaster, record: ObservedSeries, at: datetime, columns: Sequence[int]) -> Explanation:
    """Explain what ``model`` says at ``at`` about the targets in these columns, in their order.

    ``record`` must reach back by ``USUAL_SPAN`` more than the model does.
    """
    asked = list(columns)
    moments = baseline_moments(record.since, at, model.spec)
    now = model.inputs(record, [at])
    usual = model.inputs(record, moments) if moments else _zero_inputs(now)
    whole = _of_codes(model.network, now, usual, asked)
    scale, shift = (_reals(curve[asked]) for curve in (model.calibration.scale, model.calibration.shift))
    logits, usual_logits, history = whole.now, whole.baseline, None
    own = _of_history(model.network, now, usual, asked)
    if own is not None and model.history is not None:
        logits, usual_logits = logits + own.now, usual_logits + own.baseline
        history = _grouped(scale[:, None] * own.contributions, model.history)
    served = model.calibration.probabilities(model.network.logits(now.features, now.history))
    return Explanation(
        probabilities=served[0, asked],
        log_odds=scale * logits + shift,
        baseline_log_odds=scale * usual_logits + shift,
        alarms=scale[:, None] * whole.contributions,
        history=history,
        shares=_reals(now.features[0]),
        baseline_shares=_reals(usual.features).mean(axis=0),
        moments=moments,
    )


def _of_codes(network: Network, now: Inputs, usual: Inputs, asked: list[int]) -> Attribution:
    """Share out the path from all codes' shares, for those targets alone that are asked about."""
    *hidden, last = network.layers
    layers = (*hidden, Layer(last.weight[asked], last.bias[asked]))
    return attribute(layers, _reals(now.features[0]), _reals(usual.features))


def _of_history(network: Network, now: Inputs, usual: Inputs, asked: list[int]) -> Attribution | None:
    """Share out the path from each target's own figures, a row for each target; None if there is none."""
    if not network.own or now.history is None or usual.history is None:
        return None
    here, there = _reals(now.history[0]), _reals(usual.history)
    each = [attribute(network.own, here[column], there[:, column]) for column in asked]
    width = here.shape[1]
    return Attribution(
        np.array([one.now[0] for one in each]),
        np.array([one.baseline[0] for one in each]),
        np.array([one.contributions[0] for one in each]).reshape(len(each), width),
    )


def _grouped(parts: Reals, spec: HistorySpec) -> HistoryParts:
    recency, habit, condition = np.split(parts, [spec.recent, spec.width], axis=1)
    return HistoryParts(recency.sum(axis=1), habit.sum(axis=1), condition.sum(axis=1))


def _zero_inputs(like: Inputs) -> Inputs:
    return Inputs(np.zeros_like(like.features), None if like.history is None else np.zeros_like(like.history))


def _reals(figures: Matrix) -> Reals:
    return figures.astype(np.float64)
