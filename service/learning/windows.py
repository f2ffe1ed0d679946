"""Learn arrow, dataset: what windows held, keyed by code so that no growing vocabulary can make it wrong."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from forecasting.history import append_machine_features
from forecasting.vocabulary import Columns

Codes = NDArray[np.int64]
Kind = TypeVar("Kind", bound=np.generic)


@dataclass(frozen=True, eq=False)
class WindowSet:
    """Evidence and outcome of windows, side by side; every array but the two of codes has a row a window.

    ``codes`` (ascending) name the columns of ``counts``, the evidence with repeats collapsed, and of
    ``outcomes``, what the horizon held. ``tracked`` (ascending) name the codes with own-history figures;
    a code that is in neither was never seen. Without an event log there is no history and no ``tracked``.
    """

    at: NDArray[np.int64]
    codes: Codes
    counts: NDArray[np.int32]
    outcomes: NDArray[np.bool_]
    tracked: Codes
    history: NDArray[np.float32]
    context: NDArray[np.float32]

    def __post_init__(self) -> None:
        rows, columns = len(self.at), len(self.codes)
        if self.counts.shape != (rows, columns) or self.outcomes.shape != (rows, columns):
            raise ValueError("Counts and outcomes need a row for each window and a column for each code.")
        if self.history.shape[:2] != (rows, len(self.tracked)) or len(self.context) != rows:
            raise ValueError("History needs a row for each window and a column for each tracked code.")

    def __len__(self) -> int:
        return len(self.at)

    def take(self, indices: NDArray[np.intp] | NDArray[np.bool_] | range) -> "WindowSet":
        """Return some of the windows, in the order asked for; of a range, a view that copies nothing."""
        rows = slice(indices.start, indices.stop, indices.step) if isinstance(indices, range) else indices
        return replace(
            self,
            at=self.at[rows],
            counts=self.counts[rows],
            outcomes=self.outcomes[rows],
            history=self.history[rows],
            context=self.context[rows],
        )

    def inputs(self, columns: Columns) -> NDArray[np.float32]:
        """Return each input code's share of the evidence, of all codes, unknown ones included."""
        total = np.maximum(self.counts.sum(axis=1, keepdims=True), 1)
        return _placed(self.counts / total, self.codes, columns).astype(np.float32)

    def labels(self, columns: Columns) -> NDArray[np.bool_]:
        """Return which target codes the horizon held: the multi-hot label of each window."""
        return _placed(self.outcomes, self.codes, columns)

    def code_recency(self, columns: Columns) -> NDArray[np.float32]:
        """Return windows by codes by figures: each target code's own, followed by the machine's."""
        return append_machine_features(_placed(self.history, self.tracked, columns), self.context)


def concat(parts: Sequence[WindowSet]) -> WindowSet:
    """Return all windows of several machines or moments as one, over every code that any of them knows."""
    if not parts:
        raise ValueError("There are no windows to join.")
    codes = np.unique(np.concatenate([part.codes for part in parts]))
    tracked = np.unique(np.concatenate([part.tracked for part in parts]))
    columns, followed = Columns(tuple(codes.tolist())), Columns(tuple(tracked.tolist()))
    return WindowSet(
        at=np.concatenate([part.at for part in parts]),
        codes=codes,
        counts=np.concatenate([_placed(part.counts, part.codes, columns) for part in parts]),
        outcomes=np.concatenate([_placed(part.outcomes, part.codes, columns) for part in parts]),
        tracked=tracked,
        history=np.concatenate([_placed(part.history, part.tracked, followed) for part in parts]),
        context=np.concatenate([part.context for part in parts]),
    )


def _placed(table: NDArray[Kind], codes: Codes, columns: Columns) -> NDArray[Kind]:
    """Return a table whose second axis follows ``columns``, not ``codes``; what is missing is nought."""
    place = columns.index(codes)
    known = place < columns.size
    placed = np.zeros((len(table), columns.size, *table.shape[2:]), dtype=table.dtype)
    placed[:, place[known]] = table[:, known]
    return placed
