"""Time-varying code weights: each code's frequency changes every few days, so the recent past is informative."""

import math
from functools import lru_cache

from edge_agent.simulator.profile import MachineProfile
from edge_agent.simulator.rng import seeded_rng

_PERIOD_DAYS = 5
_RAREST_SWING = 2.1
_EXTREME = 2.2


def code_weights_on(machine: MachineProfile, day: int) -> list[float]:
    """Return the weight of each of the machine's codes on ``day``.

    The rarer a code, the larger the variation.
    """
    # Codes change on different days, so that the machine does not change all at once.
    periods = [
        _draws(machine.seed, machine.index, (day + offset) // _PERIOD_DAYS, len(machine.codes))
        for offset in range(_PERIOD_DAYS)
    ]
    return [
        weight * _factor(periods[position % _PERIOD_DAYS][position], _RAREST_SWING / (1 + weight))
        for position, weight in enumerate(machine.weights)
    ]


def _factor(draw: float, swing: float) -> float:
    """Return a factor that is 1 on average, and far from it where ``swing`` is large."""
    return math.exp(swing * draw - swing * swing / 2)


@lru_cache(maxsize=256)
def _draws(seed: int, index: int, period: int, count: int) -> tuple[float, ...]:
    rng = seeded_rng(seed, index, "condition", period)
    return tuple(max(-_EXTREME, min(_EXTREME, rng.gauss(0.0, 1.0))) for _ in range(count))
