"""Evidence to features, as the paper has them: normalised counts with consecutive repeats collapsed."""

import numpy as np
from numpy.typing import NDArray

from forecasting.ragged import FleetSeries
from forecasting.series import AlarmSeries
from forecasting.vocabulary import Columns


def alarm_counts(seen: AlarmSeries, columns: Columns) -> NDArray[np.float32]:
    """Return each input code's share of the collapsed evidence; an empty window is the zero vector.

    Shares are of *all* codes, unknown ones included, so a code the model has never met still makes the
    known ones smaller, as it would have in training.
    """
    return np.asarray(fleet_counts(FleetSeries.from_series([seen]), columns)[0])


def fleet_counts(seen: FleetSeries, columns: Columns) -> NDArray[np.float32]:
    """Return the same for many machines, a row each."""
    width = columns.size + 1  # unknown codes share the column past the last
    places = seen.machine_index[seen.run_starts] * width + columns.index(seen.codes[seen.run_starts])
    counts = np.bincount(places, minlength=len(seen) * width).reshape(len(seen), width)
    every = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return np.asarray(counts[:, : columns.size] / every, dtype=np.float32)


def counts_between(
    series: AlarmSeries, start: NDArray[np.int64], end: NDArray[np.int64], codes: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Return spans by codes: how often each code opens a run in ``[start, end)`` (microseconds) of each span.

    For many windows at once what is counted above for one: a run that began before its window opens there.
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
    """Return how many runs of any code open in ``[start, end)`` of each span: the above, of all codes."""
    first, last = np.searchsorted(series.times, start), np.searchsorted(series.times, end)
    opens = _opens(series)
    before = np.concatenate([[0], np.cumsum(opens)])
    counts = before[last] - before[first]
    some = first < last
    counts[some] += ~opens[first[some]]
    return np.asarray(counts, dtype=np.int32)


def _opens(series: AlarmSeries) -> NDArray[np.bool_]:
    opens = np.ones(len(series), dtype=np.bool_)
    np.not_equal(series.codes[1:], series.codes[:-1], out=opens[1:])
    return opens
