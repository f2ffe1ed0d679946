"""Learn arrow, whole: the two ways to learn, the paper's and the product's, on one code path."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from service.learning.continual_update import Curves, UpdateConfig
from service.learning.strategies.catalogue import STRATEGIES
from service.learning.strategies.strategy import Strategy
from service.learning.torch_module import Dropout
from service.learning.torch_trainer import TrainingSpec


@dataclass(frozen=True)
class Preset:
    """How to train, what to remember and what to calibrate, for whichever strategy is asked for.

    ``calibration`` is the share of a machine's windows before its exam, the last ones, that is not learned
    from; ``min_alarms`` the fewest raw alarms in evidence and in horizon for a window to count.
    """

    training: TrainingSpec
    strategies: Mapping[str, Strategy] = field(default_factory=lambda: STRATEGIES)
    calibration: float = 0.0
    held_out: float = 0.0
    history: bool = False
    curves: Curves = "none"
    thresholds: bool = False
    unbalancing: float = 0.0
    averaging: bool = False
    min_alarms: int = 0

    def update_config(self, strategy: str, *, memory: int, history: bool = True) -> UpdateConfig:
        """Return what a strategy needs beside training; ``history`` is whether windows carry any."""
        return UpdateConfig(
            strategy=self.strategies[strategy],
            memory=memory,
            history=self.history and history,
            held_out=self.held_out,
            calibration_mode=self.curves,
            thresholds=self.thresholds,
            label_reweighting=self.unbalancing,
            interpolate_weights=self.averaging,
        )


PRESETS: Final[Mapping[str, Preset]] = {
    "paper": Preset(training=TrainingSpec(), min_alarms=20),
    "product": Preset(
        training=TrainingSpec(
            dropout=Dropout(hidden=0.5, inputs=0.5, history=0.1),
            epochs=3,
            first_steps=300,
            loss="cross-entropy",
        ),
        calibration=0.15,
        held_out=0.25,
        history=True,
        curves="by-code",
        thresholds=True,
        unbalancing=0.5,
        averaging=True,
    ),
}
