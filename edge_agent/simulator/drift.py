"""What a simulated machine suffers from this week: codes come in spells of days, so the recent past tells."""

import math
from functools import lru_cache

from edge_agent.simulator.profile import MachineProfile
from edge_agent.simulator.rng import seeded_rng

_PERIOD_DAYS = 5  # days
_RAREST_SWING = 2.1
_EXTREME = 2.2


def code_weights_on(machine: MachineProfile, day: int) -> list[float]:
    """Return the weight of each of the machine's codes on ``day``.

    The rarer a code, the longer it keeps quiet and the livelier its spells.
    """
    # Codes change on different days, or the whole machine would turn into another one overnight.
    spells = [
        _draws(machine.seed, machine.index, (day + late) // _PERIOD_DAYS, len(machine.codes))
        for late in range(_PERIOD_DAYS)
    ]
    return [
        weight * _factor(spells[position % _PERIOD_DAYS][position], _RAREST_SWING / (1 + weight))
        for position, weight in enumerate(machine.weights)
    ]


def _factor(draw: float, swing: float) -> float:
    """Return a factor that is 1 on average, and far from it where ``swing`` is large."""
    return math.exp(swing * draw - swing * swing / 2)


@lru_cache(maxsize=256)
def _draws(seed: int, index: int, spell: int, count: int) -> tuple[float, ...]:
    die = seeded_rng(seed, index, "condition", spell)
    return tuple(max(-_EXTREME, min(_EXTREME, die.gauss(0.0, 1.0))) for _ in range(count))
