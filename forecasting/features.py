"""Features of the paper: normalised counts with consecutive repeats collapsed."""

import numpy as np
from numpy.typing import NDArray

from forecasting.ragged import FleetSeries
from forecasting.series import AlarmSeries
from forecasting.vocabulary import Columns


def alarm_counts(seen: AlarmSeries, columns: Columns) -> NDArray[np.float32]:
    """Return each input code's share of the collapsed window; an empty window is the zero vector.

    Shares are of *all* codes, unknown ones included, as in training.
    """
    return np.asarray(fleet_counts(FleetSeries.from_series([seen]), columns)[0])


def fleet_counts(seen: FleetSeries, columns: Columns) -> NDArray[np.float32]:
    """Return :func:`alarm_counts` of many machines, a row each."""
    width = columns.size + 1  # unknown codes share the column past the last
    indices = seen.machine_index[seen.run_starts] * width + columns.index(seen.codes[seen.run_starts])
    counts = np.bincount(indices, minlength=len(seen) * width).reshape(len(seen), width)
    totals = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return np.asarray(counts[:, : columns.size] / totals, dtype=np.float32)


def counts_between(
    series: AlarmSeries, start: NDArray[np.int64], end: NDArray[np.int64], codes: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Return spans by codes: how often each code opens a run in ``[start, end)`` (microseconds) of each span.

    Like :func:`alarm_counts` for many windows: a run that began before its window counts there.
    """
    first, last = np.searchsorted(series.times, start), np.searchsorted(series.times, end)
    opens = _opens(series)
    cut = first[first < last]
    counts = np.zeros((len(start), len(codes)), dtype=np.int32)
    for column, code in enumerate(codes):
        runs = np.flatnonzero(opens & (series.codes == code))
        counts[:, column] = np.searchsorted(runs, last) - np.searchsorted(runs, first)
        counts[first < last, column] += (series.codes[cut] == code) & ~opens[cut]
    return counts


def runs_between(series: AlarmSeries, start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return how many runs of any code open in ``[start, end)`` of each span."""
    first, last = np.searchsorted(series.times, start), np.searchsorted(series.times, end)
    opens = _opens(series)
    before = np.concatenate([[0], np.cumsum(opens)])
    counts = before[last] - before[first]
    nonempty = first < last
    counts[nonempty] += ~opens[first[nonempty]]
    return np.asarray(counts, dtype=np.int32)


def _opens(series: AlarmSeries) -> NDArray[np.bool_]:
    opens = np.ones(len(series), dtype=np.bool_)
    np.not_equal(series.codes[1:], series.codes[:-1], out=opens[1:])
    return opens
