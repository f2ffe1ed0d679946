"""Which codes a model reads and which it forecasts, and the columns they live in."""

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
        """Where each input code lives."""
        return Columns(self.inputs)

    @cached_property
    def target_columns(self) -> "Columns":
        """Where each target code lives."""
        return Columns(self.targets)

    def extend(self, inputs: Iterable[int], targets: Iterable[int]) -> "Vocabulary":
        """Return a vocabulary that also knows these codes, appended in ascending order."""
        return Vocabulary(
            self.inputs + tuple(sorted(set(inputs) - set(self.inputs))),
            self.targets + tuple(sorted(set(targets) - set(self.targets))),
        )


class Columns:
    """Codes to columns, for whole arrays at once."""

    def __init__(self, codes: tuple[int, ...]) -> None:
        self.size = len(codes)
        self._order = np.argsort(np.asarray(codes, dtype=np.int64), kind="stable")
        self._sorted = np.asarray(codes, dtype=np.int64)[self._order]

    def index(self, codes: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return each code's column; unknown codes all get the column past the last, ``size``."""
        if self.size == 0:
            return np.zeros(len(codes), dtype=np.intp)
        place = np.minimum(np.searchsorted(self._sorted, codes), self.size - 1)
        known = self._sorted[place] == codes
        return np.where(known, self._order[place], self.size)
