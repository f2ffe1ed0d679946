"""The input and target codes of a model, and their columns."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Vocabulary:
    """Input codes and target codes in column order.

    The order is part of a model: codes are only ever appended, so old columns keep their meaning.
    """

    inputs: tuple[int, ...]
    targets: tuple[int, ...]

    def __post_init__(self) -> None:
        for name, codes in (("input", self.inputs), ("target", self.targets)):
            if len(set(codes)) != len(codes):
                raise ValueError(f"A vocabulary may name each {name} code only once.")

    @cached_property
    def input_columns(self) -> "Columns":
        """The column of each input code."""
        return Columns(self.inputs)

    @cached_property
    def target_columns(self) -> "Columns":
        """The column of each target code."""
        return Columns(self.targets)

    def extend(self, inputs: Iterable[int], targets: Iterable[int]) -> "Vocabulary":
        """Return a vocabulary that also knows these codes, appended in ascending order."""
        return Vocabulary(
            self.inputs + tuple(sorted(set(inputs) - set(self.inputs))),
            self.targets + tuple(sorted(set(targets) - set(self.targets))),
        )


class Columns:
    """Maps arrays of codes to columns."""

    def __init__(self, codes: tuple[int, ...]) -> None:
        self.size = len(codes)
        self._order = np.argsort(np.asarray(codes, dtype=np.int64), kind="stable")
        self._sorted = np.asarray(codes, dtype=np.int64)[self._order]

    def index(self, codes: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return each code's column; unknown codes all get the column past the last, ``size``."""
        if self.size == 0:
            return np.zeros(len(codes), dtype=np.intp)
        index = np.minimum(np.searchsorted(self._sorted, codes), self.size - 1)
        is_known = self._sorted[index] == codes
        return np.where(is_known, self._order[index], self.size)
