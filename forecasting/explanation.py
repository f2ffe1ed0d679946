"""Explain a forecast against the machine's baseline.

The baseline is the mean of the model's outputs over past moments of the same machine. Contributions are log-odds
of the calibrated probability; for each target code they sum to the difference between now and baseline.
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
# Not a divisor of a day or a week, so that every hour and weekday counts equally.
BASELINE_STEP: Final = timedelta(hours=11)


class HistoryParts(NamedTuple):
    """Contributions per target: recency of its last alarm, its regularity, and the machine's activity."""

    recency: Reals
    habit: Reals
    condition: Reals


@dataclass(frozen=True, eq=False)
class Explanation:
    """The contributions to the forecasts of some targets.

    ``alarms`` is targets by input codes; ``history`` are the contributions of the longer past, which not every
    model reads. ``moments`` are those of the baseline; without any it is the output for a machine without alarms.
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
        """The probabilities of the baseline log-odds."""
        return np.exp(-np.logaddexp(0.0, -self.baseline_log_odds))


def baseline_moments(since: datetime, at: datetime, spec: WindowSpec) -> list[datetime]:
    """Return the moments of the last 28 days for which half of the input window was observed."""
    back = (at - step * BASELINE_STEP for step in range(1, BASELINE_SPAN // BASELINE_STEP + 1))
    return [moment for moment in back if moment >= since + spec.lookback / 2]


def explain(model: Forecaster, record: ObservedSeries, at: datetime, columns: Sequence[int]) -> Explanation:
    """Explain the forecast of ``model`` at ``at`` for the targets in these columns, in their order.

    ``record`` must reach back by ``BASELINE_SPAN`` more than the model does.
    """
    targets = list(columns)
    moments = baseline_moments(record.since, at, model.spec)
    now = model.inputs(record, [at])
    baseline = model.inputs(record, moments) if moments else _zero_inputs(now)
    whole = _attribute_codes(model.network, now, baseline, targets)
    scale, shift = (_reals(curve[targets]) for curve in (model.calibration.scale, model.calibration.shift))
    logits, baseline_logits, history = whole.now, whole.baseline, None
    own = _attribute_history(model.network, now, baseline, targets)
    if own is not None and model.history is not None:
        logits, baseline_logits = logits + own.now, baseline_logits + own.baseline
        history = _grouped(scale[:, None] * own.contributions, model.network, model.history)
    served = model.calibration.probabilities(model.network.logits(now.features, now.history))
    return Explanation(
        probabilities=served[0, targets],
        log_odds=scale * logits + shift,
        baseline_log_odds=scale * baseline_logits + shift,
        alarms=scale[:, None] * whole.contributions,
        history=history,
        shares=_reals(now.features[0]),
        baseline_shares=_reals(baseline.features).mean(axis=0),
        moments=moments,
    )


def _attribute_codes(network: Network, now: Inputs, baseline: Inputs, targets: list[int]) -> Attribution:
    """Attribute the path from all codes' shares, for these targets only."""
    *hidden, last = network.layers
    layers = (*hidden, Layer(last.weight[targets], last.bias[targets]))
    return attribute(layers, _reals(now.features[0]), _reals(baseline.features))


def _attribute_history(network: Network, now: Inputs, baseline: Inputs, targets: list[int]) -> Attribution | None:
    """Attribute the path from each target's own history, a row per target; None if there is none."""
    if not network.own or now.history is None or baseline.history is None:
        return None
    here, there = _reals(network.own_inputs(now.history)[0]), _reals(network.own_inputs(baseline.history))
    *hidden, last = network.own
    own = (*hidden, Layer(last.weight[:1], last.bias[:1]))  # of the main horizon
    each = [attribute(own, here[column], there[:, column]) for column in targets]
    width = here.shape[1]
    return Attribution(
        np.array([item.now[0] for item in each]),
        np.array([item.baseline[0] for item in each]),
        np.array([item.contributions[0] for item in each]).reshape(len(each), width),
    )


def _grouped(contributions: Reals, network: Network, spec: HistorySpec) -> HistoryParts:
    columns = contributions.shape[1]
    figures = np.arange(columns) if network.encoding is None else network.encoding.sources
    group = np.digitize(figures, [spec.recent, spec.width])
    return HistoryParts(*(contributions[:, group == part].sum(axis=1) for part in range(3)))


def _zero_inputs(like: Inputs) -> Inputs:
    return Inputs(np.zeros_like(like.features), None if like.history is None else np.zeros_like(like.history))


def _reals(values: Matrix) -> Reals:
    return values.astype(np.float64)
