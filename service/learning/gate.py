"""Decide whether a candidate may replace the champion.

The metrics are average precision (the mean over codes with positives in the holdout set) and Brier skill over
the machine's base rate. F1 decides nothing, because always predicting an alarm can win it. A loss counts if it is
larger than allowed and its lower bound, by day-block bootstrap and corrected for the number of tests, is above
zero. In simulated holdout sets of sixty days this rejects 99 % of true losses of 0.1; a bound that itself had to
exceed the allowed 0.05 would accept half of them. Four weeks, or rare codes, have less power: see the tests.

An inconclusive holdout set decides nothing: the candidate passes, and the decision says that it was undecided.
On a holdout set without an alarm only a gross rise of false alarms is rejected.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf, isfinite
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from service.http.message import MACHINE, Sentence
from service.learning.metrics import Scores
from service.learning.model_comparison import METRICS, PairedBootstrap, PairedPredictions, ScoreDifference
from service.learning.ocdm import Labels

__all__ = [
    "METRICS",
    "GateDecision",
    "GateMetric",
    "GateThresholds",
    "MachineComparison",
    "PairedPredictions",
    "decide",
]

ROUNDING: Final = 1e-9  # a loss below this is arithmetic, not forgetting

MIN_RESAMPLES: Final = 50  # for a standard error

BEST: Final = "best version"
CHAMPION: Final = "champion"
BASE_RATE: Final = "base rate"


@dataclass(frozen=True, eq=False)
class MachineComparison:
    """The predictions that the gate compares for one machine.

    ``against_best`` has, for each metric, the promoted version with the best score on this machine, and
    ``against_champion`` the champion. The ``new`` machine is compared with the champion only or, if there is
    none, with its base rate (see ``first``).
    """

    machine: str
    new: bool
    against_best: Mapping[str, PairedPredictions]
    against_champion: PairedPredictions | None

    def __post_init__(self) -> None:
        if unknown := set(self.against_best) - set(METRICS):
            raise ValueError(f"The gate does not judge by {', '.join(sorted(unknown))}.")
        if self.new and self.against_champion is None and len(self.against_best) < len(METRICS):
            raise ValueError("The first machine needs its holdout set: see MachineComparison.first.")

    @classmethod
    def first(
        cls, machine: str, *, at: NDArray[np.int64], labels: Labels, base_rate: Scores, candidate: Scores
    ) -> Self:
        """Return the comparison of the first machine, when there is no champion yet."""
        pair = PairedPredictions(at, labels, base_rate, candidate, np.broadcast_to(base_rate, labels.shape))
        return cls(machine, new=True, against_best=dict.fromkeys(METRICS, pair), against_champion=None)

    @property
    def pairs(self) -> list[PairedPredictions]:
        """Every pair of this machine."""
        return [*self.against_best.values(), *([self.against_champion] if self.against_champion else [])]


@dataclass(frozen=True, kw_only=True)
class GateThresholds:
    """The allowed losses, and the probability of rejecting a good candidate by chance."""

    max_forgetting: float = 0.05  # by one old machine, since its best
    mean_loss: float = 0.01  # by the old machines together, since the champion
    error: float = 0.05  # of rejecting a candidate that differs by chance only, all tests together
    visible_loss: float = 0.1  # where chance may hide this much, the decision says so
    gross_loss: float = 0.25  # on one machine, rejected in any case
    min_days: int = 7
    resamples: int = 300
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.error < 1 or self.resamples < MIN_RESAMPLES:
            raise ValueError(f"The gate needs an error between 0 and 1 and {MIN_RESAMPLES} resamples or more.")


@dataclass(frozen=True)
class GateMetric:
    """Two scores; ``bound`` is the lower bound of the loss, NaN if unknown."""

    machine: str | None  # None is the mean over the old machines
    metric: str
    against: str
    candidate: float
    reference: float
    loss: float
    bound: float
    days: int


@dataclass(frozen=True)
class GateDecision:
    """The decision of the gate with its reasons and metrics."""

    passed: bool
    reasons: tuple[Sentence, ...]
    undecided: tuple[Sentence, ...]
    figures: tuple[GateMetric, ...]

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON; a score that is not a finite number is null."""
        figures = [
            {
                key: None if isinstance(value, float) and not isfinite(value) else value
                for key, value in row.items()
            }
            for row in map(asdict, self.figures)
        ]
        reasons, undecided = ([one.as_json() for one in each] for each in (self.reasons, self.undecided))
        return {"passed": self.passed, "reasons": reasons, "undecided": undecided, "figures": figures}


def decide(comparisons: Sequence[MachineComparison], limits: GateThresholds | None = None) -> GateDecision:
    """Decide whether the candidate may serve.

    An old machine may not lose more than ``max_forgetting`` since its best promoted version, the old machines
    together not more than ``mean_loss`` since the champion, and the new machine nothing since the champion; each
    only if chance does not explain it. The mean is not compared with the machines' best versions: a maximum over
    versions is biased upwards. Slow drift is stopped by the rule of each machine. The first machine must beat its
    base rate.
    """
    limits = limits or GateThresholds()
    if not comparisons or not all(comparison.pairs for comparison in comparisons):
        raise ValueError("The gate needs a holdout set of every machine.")
    invalid = [
        comparison
        for comparison in comparisons
        if not all(_valid_probabilities(pair.candidate) for pair in comparison.pairs)
    ]
    if invalid:  # a model that answers NaN somewhere is not compared anywhere
        words = f"{MACHINE}: the candidate answers what is not a probability."
        reasons = tuple(Sentence(words, each.machine) for each in invalid)
        return GateDecision(passed=False, reasons=reasons, undecided=(), figures=())
    questions = list(_gate_tests(comparisons, limits))
    error = limits.error / max(sum(question.tested for question in questions), 1)
    found = (reason for question in questions if (reason := question.reason(error)))
    reasons = tuple(dict.fromkeys(found))  # both metrics say the same of an exam without an alarm
    doubts = (question.doubt(error, limits.visible_loss) for question in questions)
    return GateDecision(
        passed=not reasons,
        reasons=reasons,
        undecided=tuple(dict.fromkeys(doubt for doubt in doubts if doubt)),
        figures=tuple(question.figure(error) for question in questions),
    )


@dataclass(frozen=True, eq=False)
class _GateTest:
    """A contrast and what it may cost; ``allowed`` is None where it is told and not tested."""

    machine: str | None
    against: str
    contrast: ScoreDifference
    allowed: float | None
    gross: float = inf

    @property
    def tested(self) -> bool:
        return self.allowed is not None and self.against != BASE_RATE and self.contrast.inconclusive_reason is None

    def figure(self, error: float) -> GateMetric:
        it = self.contrast
        bound = it.loss - it.margin(error)
        return GateMetric(
            self.machine, it.metric, self.against, it.candidate, it.reference, it.loss, bound, it.days
        )

    def reason(self, error: float) -> Sentence | None:
        """Return why the candidate is refused, if it is."""
        words = self._refusal(error)
        return Sentence(words, self.machine) if words else None

    def doubt(self, error: float, visible: float) -> Sentence | None:
        """Return why this decided nothing, if it did not."""
        words = self._indecision(error, visible)
        return Sentence(words, self.machine) if words else None

    def _refusal(self, error: float) -> str | None:
        it = self.contrast
        if self.allowed is None or it.inconclusive_reason:
            return self._false_alarms()
        if self.against == BASE_RATE:
            beaten = it.candidate > it.reference + ROUNDING
            words = f"{self._who} is {it.candidate:.3f}, not above the {it.reference:.3f} of its base rate."
            return None if beaten else words
        bound = it.loss - it.margin(error)
        if it.loss > self.gross:
            return f"{self._fell}: too much to be left to chance, however short the exam ({it.days} days)."
        if it.loss > self.allowed and bound > ROUNDING:
            return (
                f"{self._fell} where {self.allowed:.3f} is allowed; "
                f"at least {bound:.3f} of it is not chance ({it.days} days)."
            )
        return None

    def _false_alarms(self) -> str | None:
        """Return why a candidate is refused that announces alarms where none came, if it does.

        An exam without an alarm has no score that chance could be measured by, so only a gross loss counts.
        """
        it = self.contrast
        if self.allowed is None or it.false_alarms is None or self.against == BASE_RATE:
            return None
        said, before = it.false_alarms
        if said - before <= self.gross:
            return None
        return (
            f"{MACHINE}: no alarm came in the {it.days} days of its exam, and the squared error of the "
            f"forecasts of one alarm rose from {before:.3f} ({self.against}) to {said:.3f}, "
            f"where {self.gross:.3f} more is allowed."
        )

    def _indecision(self, error: float, visible: float) -> str | None:
        it, width = self.contrast, self.contrast.margin(error)
        if it.inconclusive_reason:
            return f"{MACHINE}: {it.inconclusive_reason}."
        if not self.tested or self.allowed is None or self._refusal(error):
            return None
        if not width <= visible:
            return (
                f"{self._who} moves by up to {width:.3f} by chance in {it.days} days, "
                f"so that a loss of {visible:.3f} since the {self.against} could not be seen."
            )
        if it.loss > self.allowed > 0:
            return f"{self._fell}, but chance may do as much ({width:.3f} in {it.days} days)."
        return None

    @property
    def _who(self) -> str:
        subject = "All old machines together" if self.machine is None else MACHINE
        return f"{subject}: {self.contrast.metric.replace('_', ' ')}"

    @property
    def _fell(self) -> str:
        it = self.contrast
        return f"{self._who} fell from {it.reference:.3f} ({self.against}) to {it.candidate:.3f}, by {it.loss:.3f}"


def _gate_tests(comparisons: Sequence[MachineComparison], limits: GateThresholds) -> Iterator[_GateTest]:
    """Yield what is asked of each machine, and then of the old ones together."""
    exams = PairedBootstrap(
        [pair for comparison in comparisons for pair in comparison.pairs],
        fewest_days=limits.min_days,
        draws=limits.resamples,
        rng=np.random.default_rng(limits.seed),
    )
    gross = limits.gross_loss
    since_champion: dict[str, list[ScoreDifference]] = defaultdict(list)
    for comparison in comparisons:
        for metric in METRICS:
            best, champion = comparison.against_best.get(metric), comparison.against_champion
            if best is not None and not comparison.new:
                yield _GateTest(
                    comparison.machine, BEST, exams.compare(metric, best), limits.max_forgetting, gross
                )
            if best is not None and comparison.new and champion is None:
                constant = replace(best, reference=np.broadcast_to(best.base_rate, best.labels.shape))
                yield _GateTest(comparison.machine, BASE_RATE, exams.compare(metric, constant), 0.0)
            if champion is not None:
                contrast = exams.compare(metric, champion)
                yield _GateTest(comparison.machine, CHAMPION, contrast, 0.0 if comparison.new else None, gross)
                if not comparison.new and contrast.inconclusive_reason is None:
                    since_champion[metric].append(contrast)
    for contrasts in since_champion.values():
        yield _GateTest(None, CHAMPION, exams.mean(contrasts), limits.mean_loss)


def _valid_probabilities(answers: Scores) -> bool:
    return bool(np.all((answers >= 0) & (answers <= 1)))  # which NaN is not
