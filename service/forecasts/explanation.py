"""A machine's forecast to its reasons: which of its past alarms drive each one, now or at a past moment."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np

from forecasting.explanation import BASELINE_SPAN, Explanation, explain
from forecasting.forecaster import Forecaster, ObservedSeries
from service.errors import NotFound
from service.forecasts.cache import ForecastCache
from service.forecasts.champion import LoadedModel
from service.forecasts.explanation_text import (
    DIGITS,
    AlarmExplanation,
    Contribution,
    ExplanationRenderer,
    top_k_with_rest,
)
from service.forecasts.service import ForecastService, ServingAt
from service.forecasts.target_labels import is_target
from service.machines.catalogue import CatalogueEntry, unknown_code
from wire.enums import PartKind
from wire.identity import MachineId

_READING: Final = (
    "Each factor changes the log-odds of the alarm from {usual}. Positive values increase the probability, "
    "negative values decrease it; 0.7 doubles the odds, -0.7 halves them. All factors sum to the difference. "
    "They show what the model used, not what causes the alarm."
)
_USUAL: Final = "the baseline of this machine, the mean over its last 28 days"
_NO_PAST: Final = "the forecast for a machine without data, because this one has too little history"


@dataclass(frozen=True)
class ForecastExplanation:
    """Why a machine's forecast says what it says, in the order of the forecast."""

    site: str
    machine: str
    as_of: datetime
    model_version: str
    hindsight: bool
    baseline_samples: int
    reading: str
    explanations: list[AlarmExplanation]


@dataclass(frozen=True)
class ExplanationService:
    """Explains what the forecast desk says; keeps nothing, because one takes a few hundredths of a second."""

    desk: ForecastService
    newest: ForecastCache

    def now(self, machine: MachineId, *, code: int | None, parts: int) -> ForecastExplanation:
        """Explain the newest forecast, as of the moment it was made, so that both tell the same figures."""
        known = self.desk.machines.get(machine)
        known.require_active()
        at = self.newest.fresh_for([known])[0].forecast.as_of
        then = ServingAt(known, self.desk.champion.current(), hindsight=False)
        return self._explain(then, at, code, parts)

    def past(self, machine: MachineId, at: datetime, *, code: int | None, parts: int) -> ForecastExplanation:
        """Explain the forecast as of a past moment, by the version that made it."""
        return self._explain(self.desk.serving_at(machine, at), at, code, parts)

    def _explain(self, then: ServingAt, at: datetime, code: int | None, parts: int) -> ForecastExplanation:
        machine, model = then.machine, then.serving.forecaster
        entries = self.desk.catalogue.entries()
        columns = _columns(then.serving, entries, code)
        (found,) = self.desk.log.evidence([machine], at - model.lookback - BASELINE_SPAN, at)
        record = ObservedSeries(found.series, found.first_at or at)
        why = explain(model, record, at, columns)
        inputs = model.vocabulary.inputs
        shares = dict(
            zip(inputs, zip(why.shares.tolist(), why.baseline_shares.tolist(), strict=True), strict=True)
        )
        witness = ExplanationRenderer(record, at, model.spec, model.lookback, why.moments, shares, entries)
        rows = np.argsort(-why.probabilities, kind="stable").tolist()
        return ForecastExplanation(
            site=machine.id.site,
            machine=machine.id.machine,
            as_of=at,
            model_version=then.serving.version.name,
            hindsight=then.hindsight,
            baseline_samples=len(why.moments),
            reading=_READING.format(usual=_USUAL if why.moments else _NO_PAST),
            explanations=[_reason(model, why, row, columns[row], parts, witness) for row in rows],
        )


def _columns(serving: LoadedModel, entries: dict[int, CatalogueEntry], code: int | None) -> list[int]:
    """Return the columns of the targets that are asked about: all that the forecast names, or one."""
    targets = serving.forecaster.vocabulary.targets
    columns = [
        place for place, target in enumerate(targets) if is_target(target, entries) and code in (None, target)
    ]
    if code is not None and not columns:
        raise NotFound(
            f"{serving.version.name} does not forecast code {code}; ask for one that the machine's forecast names."
        )
    return columns


def _reason(
    model: Forecaster, why: Explanation, row: int, column: int, keep: int, witness: ExplanationRenderer
) -> AlarmExplanation:
    code = model.vocabulary.targets[column]
    entry = witness.entries.get(code) or unknown_code(code)
    log_odds, usual = (round(float(one[row]), DIGITS) for one in (why.log_odds, why.baseline_log_odds))
    pulls = top_k_with_rest(_pulls(model, why, row, code), keep=keep, whole=log_odds - usual)
    return AlarmExplanation(
        code=code,
        text=entry.text,
        severity=entry.severity,
        probability=round(float(why.probabilities[row]), DIGITS),
        baseline_probability=round(float(why.baseline_probabilities[row]), DIGITS),
        log_odds=log_odds,
        baseline_log_odds=usual,
        contributions=[witness.render(pull) for pull in pulls],
    )


def _pulls(model: Forecaster, why: Explanation, row: int, code: int) -> Iterator[Contribution]:
    for past, contribution in zip(model.vocabulary.inputs, why.alarms[row].tolist(), strict=True):
        yield Contribution(PartKind.ALARM, past, contribution)
    if why.history is not None:
        yield Contribution(PartKind.RECENCY, code, float(why.history.recency[row]))
        yield Contribution(PartKind.HABIT, code, float(why.history.habit[row]))
        yield Contribution(PartKind.CONDITION, None, float(why.history.condition[row]))
