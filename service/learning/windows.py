"""Hold windows by code, and the sample matrices that one vocabulary's model is trained on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from forecasting.history import append_machine_features
from forecasting.vocabulary import Columns, Vocabulary

FAR, MAIN, NEAR = 1, 2, 3  # the horizon in which a code came first
UNKNOWN = 255

Codes = NDArray[np.int64]
Kind = TypeVar("Kind", bound=np.generic)


@dataclass(frozen=True, eq=False)
class WindowSet:
    """Evidence and outcome of windows, side by side; every array but the two of codes has a row a window.

    ``codes`` (ascending) name the columns of ``counts``, the evidence with repeats collapsed, and of
    ``outcomes``, what the horizon held. ``tracked`` (ascending) name the codes with own-history figures;
    a code that is in neither was never seen. Without an event log there is no history and no ``tracked``.
    ``within`` says in which horizon a code came first: ``NEAR``, ``MAIN`` or ``FAR``, or 0 for in none of them, or
    ``UNKNOWN`` where the far horizon may not be looked at.

    Windows of an event log have figures in half precision, which is enough: a large memory must fit.
    """

    at: NDArray[np.int64]
    codes: Codes
    counts: NDArray[np.int32]
    outcomes: NDArray[np.bool_]
    tracked: Codes
    history: NDArray[np.floating]
    context: NDArray[np.floating]
    within: NDArray[np.uint8] | None = None

    def __post_init__(self) -> None:
        rows, columns = len(self.at), len(self.codes)
        if self.within is not None and self.within.shape != (rows, columns):
            raise ValueError("The horizons of outcomes need a row for each window and a column for each code.")
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
            within=None if self.within is None else self.within[rows],
        )

    def inputs(self, columns: Columns) -> NDArray[np.float32]:
        """Return each input code's share of the evidence, of all codes, unknown ones included."""
        total = np.maximum(self.counts.sum(axis=1, keepdims=True), 1)
        return _align(self.counts / total, self.codes, columns).astype(np.float32)

    def labels(self, columns: Columns) -> NDArray[np.bool_]:
        """Return which target codes the horizon held: the multi-hot label of each window."""
        return _align(self.outcomes, self.codes, columns)

    def horizons(self, columns: Columns) -> NDArray[np.uint8] | None:
        """Return in which horizon each target code came first, where that is known."""
        return None if self.within is None else _align(self.within, self.codes, columns)

    def code_recency(self, columns: Columns) -> NDArray[np.floating]:
        """Return windows by codes by figures: each target code's own, followed by the machine's."""
        return append_machine_features(_align(self.history, self.tracked, columns), self.context)


def concat_windows(parts: Sequence[WindowSet]) -> WindowSet:
    """Return all windows of several machines or moments as one, over every code that any of them knows."""
    if not parts:
        raise ValueError("There are no windows to join.")
    codes = np.unique(np.concatenate([part.codes for part in parts]))
    tracked = np.unique(np.concatenate([part.tracked for part in parts]))
    columns, followed = Columns(tuple(codes.tolist())), Columns(tuple(tracked.tolist()))
    known = [within for part in parts if (within := part.horizons(columns)) is not None]
    return WindowSet(
        at=np.concatenate([part.at for part in parts]),
        codes=codes,
        counts=np.concatenate([_align(part.counts, part.codes, columns) for part in parts]),
        outcomes=np.concatenate([_align(part.outcomes, part.codes, columns) for part in parts]),
        tracked=tracked,
        history=np.concatenate([_align(part.history, part.tracked, followed) for part in parts]),
        context=np.concatenate([part.context for part in parts]),
        within=np.concatenate(known) if len(known) == len(parts) else None,
    )


def _align(table: NDArray[Kind], codes: Codes, columns: Columns) -> NDArray[Kind]:
    """Return a table whose second axis follows ``columns``, not ``codes``; what is missing is zero."""
    place = columns.index(codes)
    known = place < columns.size
    placed = np.zeros((len(table), columns.size, *table.shape[2:]), dtype=table.dtype)
    placed[:, place[known]] = table[:, known]
    return placed


@dataclass(frozen=True, eq=False)
class Samples:
    """The paper's x and y, row by row; ``history`` is rows by targets by figures, for models that read it.

    ``weights`` say how much each label of each row counts in training; without them, all the same. ``within`` is
    that of windows.
    """

    inputs: NDArray[np.float32]
    labels: NDArray[np.bool_]
    history: NDArray[np.floating] | None = None
    weights: NDArray[np.float32] | None = None
    within: NDArray[np.uint8] | None = None

    def __post_init__(self) -> None:
        parts = (self.labels, self.history, self.weights, self.within)
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
            within=windows.horizons(targets) if history else None,
        )

    def __len__(self) -> int:
        return len(self.inputs)


def concat_samples(parts: Sequence[Samples]) -> Samples:
    """Return all samples of several parts, one part after the other; all with history or none."""
    histories = [part.history for part in parts if part.history is not None]
    if len(histories) not in (0, len(parts)):
        raise ValueError("Samples with and without own history cannot be stacked.")
    within = [part.within for part in parts if part.within is not None]
    weighted = any(part.weights is not None for part in parts)
    return Samples(
        np.concatenate([part.inputs for part in parts]),
        np.concatenate([part.labels for part in parts]),
        np.concatenate(histories) if histories else None,
        np.concatenate([_weights(part) for part in parts]) if weighted else None,
        np.concatenate(within) if len(within) == len(parts) else None,
    )


def _weights(part: Samples) -> NDArray[np.float32]:
    return np.ones(part.labels.shape, dtype=np.float32) if part.weights is None else part.weights
