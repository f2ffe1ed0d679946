"""What a forecaster would notify of: how often, how often right, how many onsets, how long before.

The rule is the same for every forecaster: a notification opens at a probability of 0.6, and is armed again below
0.8 times that. It is right if the alarm occurs within the horizon. An onset follows a horizon without it.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Moments = NDArray[np.int64]
Reals = NDArray[np.float64]

NOTIFY_FROM: Final = 0.6
RELEASE: Final = 0.8
SENT, RIGHT, ONSETS, ANNOUNCED = range(4)
_LEAD: Final = 4  # counts of announced onsets by lead time follow
_LEAD_BINS, _BIN_MINUTES = 32, 15
NOTIFICATION_WIDTH: Final = _LEAD + _LEAD_BINS
_MINUTE_US: Final = 60_000_000
_LONGEST_STEP_US: Final = 60 * _MINUTE_US  # between two forecasts, for an onset between their horizons' ends


def cold_pairs(at: Moments, occurred: Flags, is_target: Flags, horizon_us: Moments | int) -> Flags:
    """Return where a code had not occurred within a horizon before; False where no row of that time tells."""
    earlier = at - horizon_us
    row = np.minimum(np.searchsorted(at, earlier), max(len(at) - 1, 0))
    known = (at[row] == earlier)[:, None] & is_target[row]
    return np.asarray(known & ~occurred[row] & is_target)


def notification_sums(
    at: Moments, probability: NDArray[np.floating], occurred: Flags, is_target: Flags, horizon_us: Moments | int
) -> Reals:
    """Return counts by code: sent, right, onsets, announced, and announced by lead time; rows in time order."""
    sums = np.zeros((NOTIFICATION_WIDTH, occurred.shape[1]))
    if len(at) == 0:
        return sums
    positive, opened = occurred & is_target, _opened(probability, is_target)
    onset = np.zeros_like(positive)
    onset[1:] = positive[1:] & ~occurred[:-1] & is_target[:-1] & (np.diff(at) <= _LONGEST_STEP_US)[:, None]
    rows, codes = np.nonzero(onset)
    ends = np.broadcast_to(at + horizon_us, at.shape)[rows - 1]  # the alarm is raised soon after
    places = np.where(opened, np.arange(len(at))[:, None], len(at))
    following = np.minimum.accumulate(places[::-1], axis=0)[::-1][rows, codes]  # the next that opens
    lead = ends - np.append(at, np.iinfo(np.int64).max)[following]
    announced = lead >= 0
    sums[SENT], sums[RIGHT] = opened.sum(axis=0), (opened & positive).sum(axis=0)
    sums[ONSETS] = onset.sum(axis=0)
    np.add.at(sums, (ANNOUNCED, codes[announced]), 1)
    bins = np.minimum(lead[announced] // (_BIN_MINUTES * _MINUTE_US), _LEAD_BINS - 1)
    np.add.at(sums, (_LEAD + bins, codes[announced]), 1)
    return sums


def median_lead_minutes(sums: Reals) -> float | None:
    """Return the median lead time of announced onsets, from summed counts."""
    counts = sums[_LEAD:]
    if not counts.any():
        return None
    middle = int(np.searchsorted(np.cumsum(counts), counts.sum() / 2))
    return (middle + 0.5) * _BIN_MINUTES


def _opened(probability: NDArray[np.floating], is_target: Flags) -> Flags:
    """Return where a probability reaches the limit for the first time since it was clearly below."""
    mark = np.where(probability >= NOTIFY_FROM, 1, np.where(probability < RELEASE * NOTIFY_FROM, -1, 0))
    mark[~is_target] = -1
    last = np.maximum.accumulate(np.where(mark != 0, np.arange(len(mark))[:, None], -1), axis=0)
    state = np.where(last >= 0, np.take_along_axis(mark, np.maximum(last, 0), axis=0), -1)
    before = np.vstack([np.full((1, mark.shape[1]), -1), state[:-1]])
    return np.asarray((state == 1) & (before == -1))
