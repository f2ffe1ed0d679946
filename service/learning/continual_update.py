"""Learn one more machine: replay training, new memory, calibration and thresholds.

The same steps for every strategy and preset, in the experiment and in the service. The trainer is passed in.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import numpy as np
from numpy.random import Generator

from forecasting.calibration import Calibration
from forecasting.forecaster import Forecaster as Model
from forecasting.history import HistorySpec
from forecasting.network import Layer, Matrix, Network
from forecasting.vocabulary import Vocabulary
from forecasting.window import WindowSpec
from service.learning.calibration import ONE_CURVE, SHRINKAGE, fit, thresholds
from service.learning.dataset import TrainingData
from service.learning.memory import Memory
from service.learning.strategies import Strategy
from service.learning.windows import FAR, MAIN, NEAR, Samples, WindowSet, concat_samples

Train = Callable[[Network | None, Samples, Samples | None], Network]
Curves = Literal["none", "shared", "by-code"]

FEWEST: Final = 8  # windows of a machine in memory with a budget per machine; with a quarter held out, two of them
_STEP_RATIO: Final = 0.7
_MAX_STEPS: Final = 7  # the shortest goes an eighth of the way, so that a learned machine has some effect


def best_interpolation(old: Network, new: Network, checks: Sequence[Samples]) -> Network:
    """Return the weights between the old and the new ones that have the lowest loss on the checks.

    One more machine pulls the model towards itself, in spite of replay. Weights nearer to the old ones forecast
    the old machines better and the new one usually no worse. ``checks`` are held-out samples of one machine each,
    all of equal weight. Steps are tried from the whole way down, while the next shorter one is better.
    """
    together = concat_samples(checks)
    weights = np.concatenate([np.full(len(part), 1 / len(part)) for part in checks])

    def loss(network: Network) -> float:
        logits = network.logits(together.inputs, together.history)
        losses = np.logaddexp(0, logits) - logits * together.labels
        return float(weights @ losses.mean(axis=1))

    best, least = new, loss(new)
    for step in range(1, _MAX_STEPS):
        nearer = interpolate(old, new, share=_STEP_RATIO**step)
        if (current := loss(nearer)) >= least:
            break
        best, least = nearer, current
    return best


def widen(network: Network, *, inputs: int, outputs: int) -> Network:
    """Return the network with zero weights for further codes; the outputs of old codes do not change.

    A new code starts from its own history, through the path that all codes share.
    """
    if inputs < network.inputs or outputs < network.outputs:
        raise ValueError("A network only ever grows: codes are appended to a vocabulary, never taken away.")
    layers = list(network.layers)
    layers[0] = Layer(_padded(layers[0].weight, (0, inputs - network.inputs)), layers[0].bias)
    more = outputs - network.outputs
    layers[-1] = Layer(_padded(layers[-1].weight, (more, 0)), np.pad(layers[-1].bias, (0, more)))
    return replace(network, layers=tuple(layers))


def interpolate(old: Network, new: Network, *, share: float) -> Network:
    """Return weights between the old and the new ones, ``share`` of the way; the old ones grow to fit."""
    before = widen(old, inputs=new.inputs, outputs=new.outputs).arrays()
    step = np.float32(share)
    return Network.from_arrays(
        {name: before[name] + step * (after - before[name]) for name, after in new.arrays().items()}, new.encoding
    )


def _padded(weight: Matrix, more: tuple[int, int]) -> Matrix:
    return np.pad(weight, [(0, count) for count in more])


@dataclass(frozen=True)
class UpdateConfig:
    """How one more machine is learned.

    ``memory`` is the paper's M, or with a budget ``per_machine`` the most that all machines together may have;
    then every machine keeps at least ``FEWEST``, however many there are. The share ``held_out`` of it is not
    replayed but used to fit calibration curves and a threshold for each code. Without it, as in the paper,
    probabilities are uncalibrated and thresholds 0.5.

    ``history`` gives the network each code's own history. ``label_reweighting`` weighs replayed labels towards
    their real frequency (``TaskMemory.weights``). ``interpolate_weights`` moves only as far from the old weights
    to the new ones as held-out windows support.
    """

    strategy: Strategy
    memory: int = 2000
    per_machine: int | None = None
    spec: WindowSpec = field(default_factory=WindowSpec)
    history: HistorySpec | None = None
    held_out: float = 0.0
    calibration_mode: Curves = "none"
    thresholds: bool = False
    label_reweighting: float = 0.0
    interpolate_weights: bool = False

    def size(self, machines: int) -> int:
        """Return the number of windows in the memory of so many machines."""
        if self.per_machine is None:
            return self.memory
        return max(min(self.memory, self.per_machine * machines), FEWEST * machines)

    def samples(self, windows: WindowSet, vocabulary: Vocabulary) -> Samples:
        return Samples.from_windows(windows, vocabulary, history=self.history is not None)


def predict(model: Model, samples: Samples) -> Matrix:
    """Return calibrated probabilities of samples in the model's vocabulary."""
    return model.calibration.probabilities(_logits(model, samples)[..., 0])


def predict_horizons(model: Model, samples: Samples) -> Matrix | None:
    """Return samples by codes by horizons of probabilities, if the model forecasts three."""
    return model.calibration.by_horizon(_logits(model, samples))


def _logits(model: Model, samples: Samples) -> Matrix:
    return model.network.horizon_logits(samples.inputs, samples.history)


def update_model(
    data: TrainingData,
    *,
    network: Network | None,
    memory: Memory,
    vocabulary: Vocabulary,
    config: UpdateConfig,
    train: Train,
    rng: Generator,
) -> tuple[Model, Memory]:
    """Return the model and the memory after one more machine; the given ones are not changed."""
    trained = _train(data, network, memory, vocabulary, config, train)
    size = config.size(len({*memory.tasks, data.machine}))
    held_out = round(size * config.held_out)
    updated = memory.update(
        data.machine,
        data.train,
        size=size - held_out,
        strategy=config.strategy,
        targets=vocabulary.target_columns,
        rng=rng,
    ).with_holdout(data.machine, data.calibration, size=held_out, rng=rng)
    checks = _holdout_samples(data, updated, vocabulary, config)
    if config.interpolate_weights and network is not None and checks and not config.strategy.from_scratch:
        trained = best_interpolation(network, trained, checks)
    return _model(trained, vocabulary, checks, config), updated


def halve_step(
    model: Model, before: Network, *, data: TrainingData, memory: Memory, config: UpdateConfig
) -> Model:
    """Return the model half the way back to the weights before, calibrated again on the updated ``memory``."""
    halfway = interpolate(before, model.network, share=0.5)
    return _model(halfway, model.vocabulary, _holdout_samples(data, memory, model.vocabulary, config), config)


def _holdout_samples(
    data: TrainingData, memory: Memory, vocabulary: Vocabulary, config: UpdateConfig
) -> list[Samples]:
    """Return samples of each machine that were not trained on; the newest machine comes last."""
    if not config.held_out:
        return []
    checks = [task.held_out for name, task in memory.tasks.items() if name != data.machine]
    return [config.samples(part, vocabulary) for part in (*checks, data.calibration) if len(part)]


def _model(network: Network, vocabulary: Vocabulary, checks: list[Samples], config: UpdateConfig) -> Model:
    targets = vocabulary.target_columns.size
    even = np.full(targets, 0.5, dtype=np.float32)
    plain = Model(config.spec, vocabulary, network, Calibration.identity(targets), even, config.history)
    return calibrate(plain, checks, config=config) if checks else plain


def calibrate(model: Model, checks: Sequence[Samples], *, config: UpdateConfig) -> Model:
    """Return the model with curves and thresholds fitted on samples of several machines, all of equal weight."""
    logits = [_logits(model, part) for part in checks]
    mean = sum(map(len, checks)) / len(checks)
    weights = np.concatenate([np.full((len(part), 1), mean / len(part)) for part in checks])
    labels = [part.labels for part in checks]
    if config.calibration_mode != "none":
        shrinkage = ONE_CURVE if config.calibration_mode == "shared" else SHRINKAGE
        together = np.concatenate(logits)
        curves = fit(together[..., 0], np.concatenate(labels), weights=weights, shrinkage=shrinkage)
        within = concat_samples(checks).within
        if within is not None and model.network.link is not None:
            came = (within == MAIN) | (within == NEAR)
            near = fit(together[..., 1], within == NEAR, weights=weights * came, shrinkage=shrinkage)
            far = fit(together[..., 2], within == FAR, weights=weights * (within <= FAR), shrinkage=shrinkage)
            curves = replace(curves, near=near, far=far)
        model = replace(model, calibration=curves)
    if not config.thresholds:
        return model
    predicted = [model.calibration.probabilities(part[..., 0]) for part in logits]
    # Outcomes of few windows are noisy and calibration is not perfect: weigh both by half.
    expected = [(probability + label) / 2 for probability, label in zip(predicted, labels, strict=True)]
    return replace(model, thresholds=thresholds(predicted, expected))


def _train(
    data: TrainingData,
    network: Network | None,
    memory: Memory,
    vocabulary: Vocabulary,
    config: UpdateConfig,
    train: Train,
) -> Network:
    new = config.samples(data.train, vocabulary)
    tasks = [task for name, task in memory.tasks.items() if name != data.machine and len(task.windows)]
    old = [config.samples(task.windows, vocabulary) for task in tasks]
    if config.strategy.from_scratch:
        return train(None, concat_samples([*old, new]), None)
    if config.label_reweighting:
        weights = [task.weights(vocabulary.target_columns, power=config.label_reweighting) for task in tasks]
        old = [replace(part, weights=weight) for part, weight in zip(old, weights, strict=True)]
    return train(network, new, concat_samples(old) if old else None)
