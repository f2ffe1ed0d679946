"""One episode of alarms of a simulated machine: a sequence of correlated codes, minutes apart."""

import random
from collections.abc import Iterator
from itertools import accumulate

from edge_agent.simulator.tables import LIFTS, RUN_LENGTHS, USUAL_RUN

MAX_PAUSE_S = 29.5 * 60  # half an hour of silence ends an episode
_MAX_ALARMS = 320
_REPEAT_CHANCE = 0.32
_SINGLE_CODE_CHANCE = 0.1
_FIRST_PAUSE_CHANCE, _PAUSE_CHANCE = 0.25, 0.49
_LARGE_EPISODE = 16  # alarms; in larger ones they also come faster
FLOOD_SIZES = (200, 1849)
_FLOOD_DURATION_S = (4 * 60, 15 * 60)


class CodeSequence:
    """Draws the next code, given the weights of the day."""

    def __init__(self, codes: tuple[int, ...], weights: list[float]) -> None:
        self._codes = codes
        self._weights = weights
        self._after: dict[int | None, list[float]] = {}

    def next_code(self, code: int | None, rng: random.Random) -> int:
        """Return a code other than ``code``, likelier if it tends to follow ``code``."""
        if code not in self._after:
            self._after[code] = list(accumulate(self._weights_after(code)))
        return rng.choices(self._codes, cum_weights=self._after[code])[0]

    def _weights_after(self, code: int | None) -> list[float]:
        if code is None:
            return self._weights
        return [
            0.0 if candidate == code else weight * LIFTS.get((code, candidate), 1.0)
            for candidate, weight in zip(self._codes, self._weights, strict=True)
        ]


def episode(
    start: float, typical: float, sequence: CodeSequence, rng: random.Random, *, first: int
) -> Iterator[tuple[float, int]]:
    """Yield the seconds and codes of an episode from ``start`` on, of any size around ``typical``.

    It opens with ``first``; half an hour of silence would make two of it, so no gap is as long.
    """
    size = min(_MAX_ALARMS, max(1, round(rng.lognormvariate(0.0, 1.08) * typical)))
    pause_chance = _PAUSE_CHANCE * min(1.0, (_LARGE_EPISODE / size) ** 0.45)
    change_factor = 0.0 if rng.random() < _SINGLE_CODE_CHANCE else 1.0
    moment, code = start, first
    seen = [code]
    yield moment, code
    for number in range(1, size):
        moment += _gap(_FIRST_PAUSE_CHANCE if number == 1 else pause_chance, rng)
        if rng.random() < change_factor / RUN_LENGTHS.get(code, USUAL_RUN):
            earlier = [other for other in seen if other != code]
            code = (
                rng.choice(earlier) if earlier and rng.random() < _REPEAT_CHANCE else sequence.next_code(code, rng)
            )
            seen.append(code)
        yield moment, code


def burst(start: float, code: int, rng: random.Random) -> Iterator[tuple[float, int]]:
    """Yield a few alarms of one code in quick succession."""
    moment = start
    yield moment, code
    while rng.random() > 1 / RUN_LENGTHS.get(code, USUAL_RUN):
        moment += _gap(0.0, rng)
        yield moment, code


def flood(
    start: float, codes: tuple[int, ...], weights: list[float], rng: random.Random
) -> Iterator[tuple[float, int]]:
    """Yield hundreds of alarms within minutes, in no order, as after a restart."""
    smallest, largest = FLOOD_SIZES
    size = round(smallest * (largest / smallest) ** rng.random())
    seconds = rng.uniform(*_FLOOD_DURATION_S)
    for code in rng.choices(codes, weights, k=size):
        yield start + rng.uniform(0.0, seconds), code


def _gap(pause_chance: float, rng: random.Random) -> float:
    """Return the seconds to the next alarm: mostly well under a minute or so, at times a pause of many."""
    if rng.random() < pause_chance:
        return min(MAX_PAUSE_S, 60 + rng.expovariate(1 / (8.2 * 60)))
    return 36 * rng.lognormvariate(0.0, 0.55)
