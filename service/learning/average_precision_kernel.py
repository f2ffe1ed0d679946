"""Learn arrow, gate: the loop of the weighted average precision, compiled when the first exam is judged.

Kept apart from :mod:`service.learning.resampling` because numba is worth loading only where exams are judged.
"""

import os

import numpy as np
from numba import njit
from numpy.typing import NDArray

Reals = NDArray[np.float64]


# Compiled once for all processes where somebody says where to keep the result; else by each for itself.
@njit(cache="NUMBA_CACHE_DIR" in os.environ)
def average_precision(
    came: NDArray[np.bool_], ends: NDArray[np.bool_], day: NDArray[np.int64], weights: Reals
) -> Reals:
    """Return the area of each draw under precision over recall, for windows from the highest score down.

    ``came`` says which of them are hits, ``ends`` which are the last of their score, ``day`` which row of the
    ``weights`` (days by draws) is theirs.
    """
    draws = weights.shape[1]
    seen, hits, step, area = np.zeros(draws), np.zeros(draws), np.zeros(draws), np.zeros(draws)
    left, risen = came.sum(), False
    for window in range(len(came)):
        weight = weights[day[window]]
        for draw in range(draws):
            seen[draw] += weight[draw]
        if came[window]:
            left, risen = left - 1, True
            for draw in range(draws):
                step[draw] += weight[draw]
        if ends[window] and risen:
            risen = False
            for draw in range(draws):
                hits[draw] += step[draw]
                area[draw] += step[draw] * hits[draw] / seen[draw]
                step[draw] = 0.0
            if left == 0:  # after the last hit the area stays as it is
                break
    return area / hits
