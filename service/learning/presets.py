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
    ``memory`` is the size of the replay memory in all, ``per_machine`` the budget of a machine in it.
    ``min_alarms`` is the minimum number of raw alarms in the input and in the horizon of a window.
    """

    training: TrainingSpec
    strategies: Mapping[str, Strategy] = field(default_factory=lambda: STRATEGIES)
    memory: int = 2000
    per_machine: int | None = None
    calibration: float = 0.0
    held_out: float = 0.0
    history: bool = False
    curves: Curves = "none"
    thresholds: bool = False
    unbalancing: float = 0.0
    averaging: bool = False
    min_alarms: int = 0

    def update_config(
        self,
        strategy: str,
        *,
        memory: int | None = None,
        per_machine: int | None = None,
        history: bool = True,
        spec: WindowSpec | None = None,
    ) -> UpdateConfig:
        """Return the update of a strategy; ``history`` says whether the windows have any.

        Without a ``memory`` it is the preset's; with one it is the size in all, and ``per_machine`` the budget.
        """
        return UpdateConfig(
            strategy=self.strategies[strategy],
            memory=self.memory if memory is None else memory,
            per_machine=self.per_machine if memory is None else per_machine,
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
            encoded=True,
            loss="cross-entropy",
        ),
        memory=20_000,
        per_machine=1500,
        calibration=0.15,
        held_out=0.25,
        history=True,
        curves="by-code",
        thresholds=True,
        unbalancing=0.5,
        averaging=True,
    ),
}
