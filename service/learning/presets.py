"""The two presets of training, the paper's and the product's, on one code path."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from forecasting.history import HistorySpec
from forecasting.window import WindowSpec
from service.learning.continual_update import Curves, UpdateConfig
from service.learning.strategies import STRATEGIES, Strategy
from service.learning.torch_trainer import Dropout, TrainingSpec


@dataclass(frozen=True)
class Preset:
    """How to train and what to calibrate, for any strategy.

    ``calibration`` is the last share of a machine's windows before its holdout set; it is not trained on.
    ``min_alarms`` is the minimum number of raw alarms in the input and in the horizon of a window.
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

    def update_config(
        self, strategy: str, *, memory: int, history: bool = True, spec: WindowSpec | None = None
    ) -> UpdateConfig:
        """Return the update of a strategy; ``history`` says whether the windows have any."""
        return UpdateConfig(
            strategy=self.strategies[strategy],
            memory=memory,
            spec=spec or WindowSpec(),
            history=HistorySpec() if self.history and history else None,
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
