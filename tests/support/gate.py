"""Predictions of two versions for the tests of the gate."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from service.http.message import Sentence
from service.learning import metrics
from service.learning.gate import (
    METRICS,
    GateThresholds,
    MachineComparison,
    PairedPredictions,
)

HOUR = 3_600_000_000
FAST = GateThresholds(resamples=60)


def hourly(days: int) -> np.ndarray:
    return np.arange(days * 24, dtype=np.int64) * HOUR


def sigmoid(logits: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-logits)))


class Plant:
    """Exams whose windows depend on their day, and models that know a part of it, each with its own errors.

    Eight hours share one outcome, as horizons overlap; what drives a code changes with the day and within it;
    a model's errors last a day by half. Codes come in 4 to 40 % of the windows before the day has its say.
    """

    def __init__(self, seed: int, *, days: int, codes: int = 15) -> None:
        self.rng = np.random.default_rng(seed)
        self.days, self.codes = days, codes

    def _lasting(self, hours: int) -> np.ndarray:
        return np.repeat(self.rng.normal(size=(self.days * 24 // hours, self.codes)), hours, axis=0)

    def _errors(self) -> np.ndarray:
        return np.asarray((self._lasting(24) + self._lasting(1)) / np.sqrt(2))

    def exam(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what can be known of each window (logits), the labels and the base rates."""
        rate = np.exp(self.rng.uniform(np.log(0.04), np.log(0.4), self.codes))
        known = np.log(rate / (1 - rate)) - 0.7 + self._lasting(24) + self._lasting(8)
        fate = np.repeat(self.rng.random((self.days * 3, self.codes)), 8, axis=0)
        return known, fate < sigmoid(known + 0.5 * self._lasting(24)), rate

    def model(self, known: np.ndarray, *, kept: float = 1.0) -> np.ndarray:
        """Return probabilities that are right by chance; of the signal only ``kept`` is left, and recalibrated."""
        logits = known + 0.35 * self._errors()
        mean, spread = logits.mean(axis=0), logits.std(axis=0)
        mixed = kept * (logits - mean) + np.sqrt(1 - kept**2) * spread * self._errors()
        return sigmoid(mean + kept * mixed)

    def pair(self, *, kept: float = 1.0, better: float = 1.0) -> PairedPredictions:
        known, labels, rate = self.exam()
        candidate, reference = self.model(known, kept=kept), self.model(known, kept=better)
        return PairedPredictions(hourly(self.days), labels, rate, candidate, reference)


def old(machine: str, pair: PairedPredictions) -> MachineComparison:
    return MachineComparison(machine, new=False, against_best=dict.fromkeys(METRICS, pair), against_champion=pair)


def new(machine: str, pair: PairedPredictions) -> MachineComparison:
    return MachineComparison(machine, new=True, against_best={}, against_champion=pair)


def first(pair: PairedPredictions) -> MachineComparison:
    return MachineComparison.first(
        "m1", at=pair.at, labels=pair.labels, base_rate=pair.base_rate, candidate=pair.candidate
    )


def unchanged(pair: PairedPredictions) -> PairedPredictions:
    return replace(pair, candidate=pair.reference)


def precision(labels: np.ndarray, answers: np.ndarray) -> float:
    return metrics.macro(metrics.average_precision(labels, answers), np.asarray(labels.any(axis=0)))


def texts(sentences: Sequence[Sentence]) -> tuple[str, ...]:
    return tuple(map(str, sentences))


# --- old machines
