"""Learn arrow, dataset: what a horizon held becomes the label y = (y_1 … y_L) of the paper."""

import numpy as np
from numpy.typing import NDArray

from forecasting.series import AlarmSeries
from forecasting.vocabulary import Columns


def multi_hot(happened: AlarmSeries, columns: Columns) -> NDArray[np.bool_]:
    """Return which target codes are among these alarms; codes that are no targets leave no trace."""
    held = np.zeros(columns.size + 1, dtype=np.bool_)
    held[columns.of(happened.codes)] = True
    return held[:-1]


def held_between(
    series: AlarmSeries, start: NDArray[np.int64], end: NDArray[np.int64], codes: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return spans by codes: whether ``[start, end)`` of each span (microseconds) held each code."""
    held = np.zeros((len(start), len(codes)), dtype=np.bool_)
    for column, code in enumerate(codes):
        times = series.times[series.codes == code]
        held[:, column] = np.searchsorted(times, end) > np.searchsorted(times, start)
    return held
