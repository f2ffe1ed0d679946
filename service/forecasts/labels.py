"""Learn arrow, dataset: what a horizon held becomes the label y = (y_1 … y_L) of the paper."""

import numpy as np
from numpy.typing import NDArray

from forecasting.series import AlarmSeries


def label_matrix(
    series: AlarmSeries, start: NDArray[np.int64], end: NDArray[np.int64], codes: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return spans by codes: whether ``[start, end)`` of each span (microseconds) held each code."""
    held = np.zeros((len(start), len(codes)), dtype=np.bool_)
    for column, code in enumerate(codes):
        times = series.times[series.codes == code]
        held[:, column] = np.searchsorted(times, end) > np.searchsorted(times, start)
    return held
