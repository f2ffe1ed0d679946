"""Which alarm codes are learned of a machine that has raised very many of them.

Every code that is learned takes memory and time in training, in each stored window and in every later learning of
every machine. Codes of the catalogue always count. The others are limited, because a machine with a defect, or one
that means harm, can raise as many of them as it likes.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from forecasting.series import AlarmSeries

OTHER: Final = -1  # stands in windows for all codes that are not learned; no alarm has it
_DAY_US: Final = 86_400_000_000


@dataclass(frozen=True)
class CodeLimits:
    """How many codes outside of the catalogue are learned.

    Of one machine ``per_machine``, all of them if it has no more. If it has more, those that came on ``days``
    different days or more, and of these the ones that came on most days. A model reads ``in_model`` in all.
    """

    per_machine: int = 500
    in_model: int = 5000
    days: int = 3


@dataclass(frozen=True, eq=False)
class ChosenCodes:
    """The codes of a machine that are learned: all (ascending), and those outside of the catalogue, best first."""

    codes: NDArray[np.int64]
    unlisted: tuple[int, ...]
    left_out: int


def choose_codes(series: AlarmSeries, listed: Collection[int], limits: CodeLimits) -> ChosenCodes:
    """Choose which codes of a series are learned; ``listed`` are those of the catalogue."""
    every = np.unique(series.codes)
    unlisted = np.setdiff1d(every, np.fromiter(listed, dtype=np.int64, count=len(listed)))
    days = _days_seen(series, unlisted)
    best = unlisted[np.lexsort((unlisted, -days))]
    if len(unlisted) > limits.per_machine:
        best = best[: min(limits.per_machine, int(np.count_nonzero(days >= limits.days)))]
    kept = np.union1d(np.setdiff1d(every, unlisted), best)
    return ChosenCodes(kept, tuple(best.tolist()), len(every) - len(kept))


def _days_seen(series: AlarmSeries, codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return on how many days (UTC) each code came."""
    of_codes = np.isin(series.codes, codes)
    pairs = np.unique(np.stack([series.codes[of_codes], series.times[of_codes] // _DAY_US]), axis=1)
    return np.asarray(np.bincount(np.searchsorted(codes, pairs[0]), minlength=len(codes)), dtype=np.int64)
