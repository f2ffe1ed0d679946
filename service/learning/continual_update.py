"""Learn arrow, whole: one more machine is learned, and what comes out is a model and a memory.

The same steps for every strategy and preset, in the experiment and in the service: replay training, the new
memory, calibration and thresholds from windows that were not learned from. Training itself is passed in.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.random import Generator

from forecasting.calibration import Calibration
from forecasting.network import Matrix, Network
from forecasting.vocabulary import Vocabulary
from service.learning.calibration import ONE_CURVE, SHRINKAGE, fit, thresholds
from service.learning.interpolation import best_interpolation, interpolate
from service.learning.memory import Memory
from service.learning.samples import Samples, concat
from service.learning.strategies.strategy import Strategy
from service.learning.windows import WindowSet

Train = Callable[[Network | None, Samples, Samples | None], Network]
Curves = Literal["none", "shared", "by-code"]


@dataclass(frozen=True)
class UpdateConfig:
    """What is decided beside training: who is remembered, what is read, and how probabilities are made.

    ``memory`` is the paper's M. Of it the share ``held_out`` is kept for calibration instead of replay: for
    ``curves`` that make logits honest probabilities, and for ``thresholds`` of each code. Without them, as in
    the paper, probabilities are what training gave, and every code is announced from a half on.

    ``unbalancing`` weighs replayed labels towards how often they came (``TaskMemory.weights``), and
    ``averaging`` goes only so far from the old weights to the new ones as windows held out say (``stride``).
    """

    strategy: Strategy
    memory: int = 2000
    history: bool = False
    held_out: float = 0.0
    calibration_mode: Curves = "none"
    thresholds: bool = False
    label_reweighting: float = 0.0
    interpolate_weights: bool = False


@dataclass(frozen=True, eq=False)
class Model:
    """Everything a forecast needs beside the evidence."""

    vocabulary: Vocabulary
    network: Network
    calibration: Calibration
    thresholds: Matrix

    def logits(self, samples: Samples) -> Matrix:
        """Return the network's logits of samples in this model's vocabulary."""
        return self.network.logits(samples.inputs, samples.history)

    def probabilities(self, samples: Samples) -> Matrix:
        """Return calibrated probabilities of samples in this model's vocabulary."""
        return self.calibration.probabilities(self.logits(samples))


@dataclass(frozen=True, eq=False)
class TaskData:
    """A machine to learn: windows to learn from, and later ones to calibrate on."""

    task: str
    train: WindowSet
    calibration: WindowSet


def update_model(
    lesson: TaskData,
    *,
    network: Network | None,
    memory: Memory,
    vocabulary: Vocabulary,
    recipe: UpdateConfig,
    train: Train,
    rng: Generator,
) -> tuple[Model, Memory]:
    """Return the model and the memory after one more machine; neither of those given is changed."""
    trained = _train(lesson, network, memory, vocabulary, recipe, train)
    targets = vocabulary.target_columns
    held_out = round(recipe.memory * recipe.held_out)
    updated = memory.update(
        lesson.task,
        lesson.train,
        size=recipe.memory - held_out,
        strategy=recipe.strategy,
        targets=targets,
        rng=rng,
    ).with_holdout(lesson.task, lesson.calibration, size=held_out, rng=rng)
    unlearned = _holdout_samples(lesson, updated, vocabulary, recipe)
    if recipe.interpolate_weights and network is not None and unlearned and not recipe.strategy.from_scratch:
        trained = best_interpolation(network, trained, unlearned)
    return _model(trained, vocabulary, unlearned, recipe), updated


def halve_step(model: Model, before: Network, *, lesson: TaskData, memory: Memory, recipe: UpdateConfig) -> Model:
    """Return the model half the way back to the weights before, made honest anew.

    ``memory`` is the one that was learned with it.
    """
    halfway = interpolate(before, model.network, share=0.5)
    return _model(halfway, model.vocabulary, _holdout_samples(lesson, memory, model.vocabulary, recipe), recipe)


def _holdout_samples(
    lesson: TaskData, memory: Memory, vocabulary: Vocabulary, recipe: UpdateConfig
) -> list[Samples]:
    """Return what no weights have learned from, of each machine that has any; the newest comes last."""
    if not round(recipe.memory * recipe.held_out):
        return []
    checks = [task.held_out for name, task in memory.tasks.items() if name != lesson.task]
    parts = [part for part in (*checks, lesson.calibration) if len(part)]
    return [Samples.from_windows(part, vocabulary, history=recipe.history) for part in parts]


def _model(network: Network, vocabulary: Vocabulary, unlearned: list[Samples], recipe: UpdateConfig) -> Model:
    targets = vocabulary.target_columns.size
    even = np.full(targets, 0.5, dtype=np.float32)
    plain = Model(vocabulary, network, Calibration.identity(targets), even)
    return calibrate(plain, unlearned, recipe=recipe) if unlearned else plain


def calibrate(model: Model, checks: Sequence[Samples], *, recipe: UpdateConfig) -> Model:
    """Return the model with curves and thresholds fitted on samples of several machines, each as weighty."""
    logits = [model.logits(part) for part in checks]
    mean = sum(map(len, checks)) / len(checks)
    weights = np.concatenate([np.full((len(part), 1), mean / len(part)) for part in checks])
    labels = [part.labels for part in checks]
    if recipe.calibration_mode != "none":
        shrinkage = ONE_CURVE if recipe.calibration_mode == "shared" else SHRINKAGE
        curves = fit(np.concatenate(logits), np.concatenate(labels), weights=weights, shrinkage=shrinkage)
        model = replace(model, calibration=curves)
    if not recipe.thresholds:
        return model
    said = [model.calibration.probabilities(part) for part in logits]
    # Few windows leave what came to chance, and calibration is never perfect: trust each by half.
    likely = [(probability + label) / 2 for probability, label in zip(said, labels, strict=True)]
    return replace(model, thresholds=thresholds(said, likely))


def _train(
    lesson: TaskData,
    network: Network | None,
    memory: Memory,
    vocabulary: Vocabulary,
    recipe: UpdateConfig,
    train: Train,
) -> Network:
    new = Samples.from_windows(lesson.train, vocabulary, history=recipe.history)
    kept = [task for name, task in memory.tasks.items() if name != lesson.task and len(task.windows)]
    old = [Samples.from_windows(task.windows, vocabulary, history=recipe.history) for task in kept]
    if recipe.strategy.from_scratch:
        return train(None, concat([*old, new]), None)
    if recipe.label_reweighting:
        weights = [task.weights(vocabulary.target_columns, power=recipe.label_reweighting) for task in kept]
        old = [replace(part, weights=weight) for part, weight in zip(old, weights, strict=True)]
    return train(network, new, concat(old) if old else None)
