"""The profile of a simulated machine: kind, shift and code weights, from seed and index."""

import math
from dataclasses import dataclass

from edge_agent.simulator.rng import seeded_rng
from edge_agent.simulator.tables import (
    ANNOUNCED_CODES,
    COMMON_CODES,
    MAIN_CODES,
    RARE_CODES,
    RARE_FALL_OFF,
    RARE_TOP_SHARE,
    RUN_LENGTHS,
    SHIFT_PATTERNS,
    UNANNOUNCED_SHARE,
    USUAL_RUN,
)

_SATURDAY, _SUNDAY = 5, 6
_RARE_OFTENEST_FITTED, _RARE_LEAST_FITTED, _FITTED_FALL = 0.9, 0.13, 0.013


@dataclass(frozen=True)
class MachineProfile:
    """One machine of a fleet; what it does on any day follows from this alone.

    ``shift_start`` is an hour of the UTC day; the shift runs ``shift_hours`` from there, past midnight
    if it must. ``weights`` say how often each of ``codes`` takes its turn, on an ordinary day.
    """

    seed: int
    index: int
    kind: str
    days_off: frozenset[int]
    shift_start: float
    shift_hours: float
    typical_episode: float
    codes: tuple[int, ...]
    weights: tuple[float, ...]


def machine_profile(seed: int, index: int) -> MachineProfile:
    """Return machine ``index`` of the fleet ``seed``.

    Every score of indices holds the same twenty patterns in another order, so that even a small fleet
    has busy and quiet machines, and a large one keeps the published spread.
    """
    score, position = divmod(index, len(SHIFT_PATTERNS))
    pattern = seeded_rng(seed, "fleet", score).sample(SHIFT_PATTERNS, len(SHIFT_PATTERNS))[position]
    rng = seeded_rng(seed, index, "personality")
    code_weights = _code_weights(seed, index, pattern.kind)
    early, late = (2.0, 10.0) if pattern.shift_hours < 24 else (5.0, 7.0)  # noqa: PLR2004 - a day has 24 hours
    return MachineProfile(
        seed=seed,
        index=index,
        kind=pattern.kind,
        days_off=_days_off(seed, index, pattern.days_a_week),
        shift_start=rng.uniform(early, late),
        shift_hours=pattern.shift_hours,
        typical_episode=pattern.typical_episode * rng.lognormvariate(0.0, 0.1),
        codes=tuple(code_weights),
        weights=tuple(code_weights.values()),
    )


def _days_off(seed: int, index: int, days_a_week: int) -> frozenset[int]:
    weekdays = seeded_rng(seed, index, "days off").sample(range(_SATURDAY), _SATURDAY)
    return frozenset([_SUNDAY, _SATURDAY, *weekdays][: 7 - days_a_week])


def _code_weights(seed: int, index: int, kind: str) -> dict[int, float]:
    """Return how often each code gets a turn: its share of alarms, over the alarms that one turn brings."""
    rng = seeded_rng(seed, index, "leanings")
    shares = {
        code: share * rng.lognormvariate(0.0, 0.15 if code in MAIN_CODES else 0.6)
        for code, share in COMMON_CODES[kind].items()
    }
    for rank, code in enumerate(RARE_CODES):
        fitted = max(_RARE_LEAST_FITTED, _RARE_OFTENEST_FITTED - _FITTED_FALL * rank)
        share = RARE_TOP_SHARE * math.exp(-rank / RARE_FALL_OFF)
        # Most machines lack rare equipment; the others raise its codes more often, so the fleet's share stays.
        if rng.random() < fitted and code not in ANNOUNCED_CODES:
            shares[code] = share / fitted * rng.lognormvariate(0.0, 0.5)
    shares |= dict.fromkeys(ANNOUNCED_CODES, UNANNOUNCED_SHARE)
    return {code: share / RUN_LENGTHS.get(code, USUAL_RUN) for code, share in shares.items()}
