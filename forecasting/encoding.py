"""Encode own-history figures piecewise linearly: a network sees steps in them that it cannot see in one number.

Each bin of a figure becomes a column: 0 below the bin, 1 above it, linear inside. The edges are constants in
hours, counts and shares, so that stored windows stay valid.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from forecasting.history import HistorySpec

Matrix = NDArray[np.float32]

VERSION: Final = 1  # of the edges below; weights of another version cannot be used

_HOURS: Final = (0, 0.5, 1, 2, 4, 8, 16, 24, 48, 96, 168, 336, 720)  # since the code last occurred
_ALARMS: Final = (0, 1, 3, 8, 20, 40, 80, 160, 320, 1000)  # other alarms since then
_SHARES: Final = (0, 0.02, 0.06, 0.12, 0.25, 0.4, 0.6, 0.8, 1)  # of horizons or days
_SILENT_HOURS: Final = (0, 0.25, 0.5, 1, 2, 4, 8, 16, 24, 72, 168, 720)  # since the machine's last alarm
_COUNTS: Final = (  # of alarms, in each of the spec's spans
    (0, 1, 2, 5, 10, 20, 40),
    (0, 1, 3, 10, 20, 40, 80, 200),
    (0, 3, 10, 30, 60, 120, 240, 600),
    (0, 10, 50, 150, 300, 600, 1200, 2500),
    (0, 100, 400, 800, 1600, 3200, 6400),
)
_ACTIVE_HOURS: Final = (0, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 96)  # since the last pause
_ACTIVE_COUNT: Final = (0, 1, 3, 10, 30, 100, 300, 1000)  # alarms since then

_Edges = tuple[int, Sequence[float]]  # of the figure in a column, in its own unit


@dataclass(frozen=True, eq=False)
class Bins:
    """The bins of some figures: the column of each bin's figure, its lower edge, and one over its width."""

    columns: NDArray[np.intp]
    start: Matrix
    slope: Matrix

    @classmethod
    def build(cls, figures: Sequence[_Edges]) -> "Bins":
        bins = [(column, low, 1 / (high - low)) for column, edges in figures for low, high in pairwise(edges)]
        columns, start, slope = zip(*bins, strict=True)
        return cls(
            np.array(columns, dtype=np.intp),
            np.array(start, dtype=np.float32),
            np.array(slope, dtype=np.float32),
        )

    def __call__(self, figures: Matrix) -> Matrix:
        """Return the figures, and after them their bins."""
        binned = figures[..., self.columns]
        binned -= self.start
        binned *= self.slope
        return np.concatenate([figures, np.clip(binned, 0, 1, out=binned)], axis=-1)


@dataclass(frozen=True, eq=False)
class Encoding:
    """How a history is encoded: the first ``own`` figures are a code's, the rest its machine's."""

    spec: HistorySpec
    own: int
    code_bins: Bins
    machine_bins: Bins

    @classmethod
    def build(cls, spec: HistorySpec) -> "Encoding":
        """Return the encoding of the figures that ``spec`` defines."""
        longest = len(spec.decays) - 1
        slowest = len(spec.decays) + len(spec.alarms) - 1
        code = [
            (longest, _decayed(_HOURS, spec.decays[-1].total_seconds() / 3600)),
            (slowest, _decayed(_ALARMS, spec.alarms[-1])),
            *((column, _SHARES) for column in _share_columns(spec, spec.recent)),
        ]
        counts = range(len(spec.decays), len(spec.decays) + len(spec.spans))
        after = counts.stop + len(spec.rates) + len(spec.days) + len(spec.weeks) + 1
        machine = [
            (longest, _decayed(_SILENT_HOURS, spec.decays[-1].total_seconds() / 3600)),
            *((column, np.log1p(edges).tolist()) for column, edges in zip(counts, _COUNTS, strict=True)),
            *((column, _SHARES) for column in _share_columns(spec, counts.stop)),
            (after + 1, np.log1p(_ACTIVE_HOURS).tolist()),
            (after + 2, np.log1p(_ACTIVE_COUNT).tolist()),
        ]
        return cls(spec, spec.width, Bins.build(code), Bins.build(machine))

    @property
    def width(self) -> int:
        """The number of columns of the encoded code and machine figures together."""
        machine = self.spec.machine_width + len(self.machine_bins.columns)
        return self.own + len(self.code_bins.columns) + machine

    @property
    def sources(self) -> NDArray[np.intp]:
        """The figure that each encoded column is made of."""
        figures = np.arange(self.own + self.spec.machine_width)
        return np.concatenate(
            [
                figures[: self.own],
                self.code_bins.columns,
                figures[self.own :],
                self.own + self.machine_bins.columns,
            ]
        )

    def split(self, history: Matrix) -> tuple[Matrix, Matrix]:
        """Return the encoded figures of each code, and those of the machine, once for all codes."""
        return self.code_bins(history[..., : self.own]), self.machine_bins(history[..., :1, self.own :])


def _decayed(edges: Sequence[float], decay: float) -> list[float]:
    """Return edges in hours or alarms as the recency figure has them: ascending, 1 for now."""
    return sorted(np.exp(-np.asarray(edges) / decay).tolist())


def _share_columns(spec: HistorySpec, first: int) -> list[int]:
    """Return the columns of rates and of shares of days; the days themselves, between them, are yes or no."""
    shares = first + len(spec.rates) + len(spec.days)
    return [*range(first, first + len(spec.rates)), *range(shares, shares + len(spec.weeks) + 1)]
