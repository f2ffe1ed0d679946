"""Learn arrow, dataset: windows become the vectors that one vocabulary's model is trained on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forecasting.vocabulary import Vocabulary
from service.learning.windows import WindowSet


@dataclass(frozen=True, eq=False)
class Samples:
    """The paper's x and y, row by row; ``history`` is rows by targets by figures, for models that read it.

    ``weights`` say how much each label of each row counts in training; without them, all the same.
    """

    inputs: NDArray[np.float32]
    labels: NDArray[np.bool_]
    history: NDArray[np.float32] | None = None
    weights: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        parts = (self.labels, self.history, self.weights)
        if any(part is not None and len(part) != len(self.inputs) for part in parts):
            raise ValueError("Inputs, labels, history and weights need the same number of rows.")

    @classmethod
    def from_windows(cls, windows: WindowSet, vocabulary: Vocabulary, *, history: bool = False) -> "Samples":
        """Return the vectors of these windows in the columns of ``vocabulary``."""
        if history and windows.context.shape[1] == 0:
            raise ValueError("These windows carry no own history; cut them from an event log.")
        targets = vocabulary.target_columns
        return cls(
            inputs=windows.inputs(vocabulary.input_columns),
            labels=windows.labels(targets),
            history=windows.code_recency(targets) if history else None,
        )

    def __len__(self) -> int:
        return len(self.inputs)


def concat(parts: Sequence[Samples]) -> Samples:
    """Return all samples of several parts, one part after the other; all with history or none."""
    histories = [part.history for part in parts if part.history is not None]
    if len(histories) not in (0, len(parts)):
        raise ValueError("Samples with and without own history cannot be stacked.")
    weighted = any(part.weights is not None for part in parts)
    return Samples(
        np.concatenate([part.inputs for part in parts]),
        np.concatenate([part.labels for part in parts]),
        np.concatenate(histories) if histories else None,
        np.concatenate([_weights(part) for part in parts]) if weighted else None,
    )


def _weights(part: Samples) -> NDArray[np.float32]:
    return np.ones(part.labels.shape, dtype=np.float32) if part.weights is None else part.weights
