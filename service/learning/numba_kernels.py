"""Compile the two inner loops of learning: the greedy OCDM update and the weighted average precision.

Only the training process imports this module, because numba is slow to load.
"""

import os
from math import inf, log

import numpy as np
from numba import njit
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Reals = NDArray[np.float64]


# Compiled once for all processes where somebody says where to keep the result; else by each for itself.
@njit(cache="NUMBA_CACHE_DIR" in os.environ)
def greedy_remove(  # noqa: PLR0913, PLR0917, C901 - the state of the greedy, flat because it is compiled
    group: Integers,
    sets: Integers,
    ends: Integers,
    members: Integers,
    heads: Integers,
    wishes: Reals,
    held: int,
    batch: int,
    size: int,
    tie: float,
) -> Integers:
    """Let samples in and take them out again until at most ``size`` are left; return each group's next member.

    ``group`` is each sample's label set, ``sets[ends[g]:ends[g + 1]]`` the labels of set g. ``members`` holds
    the samples by set and, within one, in the order given; those of set g that are in the memory stand at
    ``heads[g]`` up to ``tails[g]``. The first ``held`` samples come at once, the others ``batch`` at a time.
    """
    heads, tails = heads.copy(), heads.copy()
    counts = np.zeros(len(wishes), dtype=np.int64)
    parts, gains, scores = np.zeros(len(wishes)), np.zeros(len(wishes)), np.zeros(len(heads))
    total = inside = offered = 0
    while offered < len(group):
        more = held if offered == 0 and held > 0 else batch
        for sample in range(offered, min(offered + more, len(group))):
            tails[group[sample]] += 1
            inside += 1
            for place in range(ends[group[sample]], ends[group[sample] + 1]):
                counts[sets[place]] += 1
                total += 1
        offered = min(offered + more, len(group))
        while inside > size:
            whole = 0.0
            for label in range(len(wishes)):
                count = counts[label]
                if count > 0:
                    parts[label] = count * (log(count) - wishes[label])
                    less = (count - 1) * (log(count - 1) - wishes[label]) if count > 1 else 0.0
                    gains[label] = parts[label] - less
                    whole += parts[label]
            best = inf
            for one in range(len(heads)):
                scores[one] = inf
                left = total - (ends[one + 1] - ends[one])
                if heads[one] < tails[one] and left > 0:
                    gain = 0.0
                    for place in range(ends[one], ends[one + 1]):
                        gain += gains[sets[place]]
                    scores[one] = (whole - gain) / left - log(left)
                    best = min(best, scores[one])
            chosen, oldest = -1, len(group)
            for one in range(len(heads)):
                if heads[one] < tails[one] and scores[one] <= best + tie and members[heads[one]] < oldest:
                    chosen, oldest = one, members[heads[one]]
            heads[chosen] += 1
            inside -= 1
            for place in range(ends[chosen], ends[chosen + 1]):
                counts[sets[place]] -= 1
                total -= 1
    return heads


# Compiled once for all processes where somebody says where to keep the result; else by each for itself.
@njit(cache="NUMBA_CACHE_DIR" in os.environ)
def weighted_average_precision(
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
