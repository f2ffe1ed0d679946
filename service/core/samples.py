"""Learn arrow, dataset: windows become the vectors that one vocabulary's model is trained on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forecasting.vocabulary import Vocabulary
from service.core.windows import Windows


@dataclass(frozen=True, eq=False)
class Samples:
    """The paper's x and y, row by row; ``history`` is rows by targets by figures, for models that read it."""

    inputs: NDArray[np.float32]
    labels: NDArray[np.bool_]
    history: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        rows = len(self.inputs)
        if len(self.labels) != rows or (self.history is not None and len(self.history) != rows):
            raise ValueError("Inputs, labels and history need the same number of rows.")

    @classmethod
    def of(cls, windows: Windows, vocabulary: Vocabulary, *, history: bool = False) -> "Samples":
        """Return the vectors of these windows in the columns of ``vocabulary``."""
        if history and windows.context.shape[1] == 0:
            raise ValueError("These windows carry no own history; cut them from an event log.")
        targets = vocabulary.target_columns
        return cls(
            inputs=windows.inputs(vocabulary.input_columns),
            labels=windows.labels(targets),
            history=windows.own_history(targets) if history else None,
        )

    def __len__(self) -> int:
        return len(self.inputs)

    def take(self, indices: NDArray[np.intp] | NDArray[np.bool_]) -> "Samples":
        """Return some of the samples, in the order asked for."""
        history = None if self.history is None else self.history[indices]
        return Samples(self.inputs[indices], self.labels[indices], history)


def stacked(parts: Sequence[Samples]) -> Samples:
    """Return all samples of several parts, one part after the other; all with history or none."""
    histories = [part.history for part in parts if part.history is not None]
    if len(histories) not in (0, len(parts)):
        raise ValueError("Samples with and without own history cannot be stacked.")
    return Samples(
        np.concatenate([part.inputs for part in parts]),
        np.concatenate([part.labels for part in parts]),
        np.concatenate(histories) if histories else None,
    )
