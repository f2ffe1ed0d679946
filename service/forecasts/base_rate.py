"""How often a machine's past horizons held each target code: what a forecast is read and scored against."""

from datetime import timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from forecasting.network import Matrix
from forecasting.series import AlarmSeries
from service.forecasts.labels import label_matrix

LOOKBACK: Final = timedelta(days=90)
_LOOKBACK_US: Final = LOOKBACK // timedelta(microseconds=1)
_HOUR_US: Final = timedelta(hours=1) // timedelta(microseconds=1)


def base_rates(
    series: AlarmSeries, first_us: int, at: NDArray[np.int64], horizon_us: int, codes: NDArray[np.int64]
) -> Matrix:
    """Return moments by codes: the share of the hourly horizons of the 90 days before that had closed by then.

    ``series`` must reach from 90 days before the first moment to the last; ``first_us`` is when the machine's
    history begins. A moment by which no horizon had closed, or before which 90 days were silent, is all NaN.
    """
    rates = np.full((len(at), len(codes)), np.nan, dtype=np.float32)
    if len(at) == 0:
        return rates
    earliest = at - _LOOKBACK_US
    first = -(-np.maximum(earliest, first_us) // _HOUR_US)  # the first full hour not before
    last = (at - horizon_us) // _HOUR_US
    spoke = np.searchsorted(series.times, at) > np.searchsorted(series.times, earliest)
    known = spoke & (last >= first)
    if not known.any():
        return rates
    first, last = first[known], last[known]
    origin = int(first.min())
    hours = np.arange(origin, int(last.max()) + 1, dtype=np.int64) * _HOUR_US
    held = label_matrix(series, hours, hours + horizon_us, codes)
    so_far = np.zeros((len(hours) + 1, len(codes)), dtype=np.int32)
    np.cumsum(held, axis=0, dtype=np.int32, out=so_far[1:])
    times_held = so_far[last - origin + 1] - so_far[first - origin]
    rates[known] = times_held / (last - first + 1)[:, None]
    return rates
