"""One episode of alarms on a simulated machine: turns of codes that call each other, minutes apart."""

import random
from collections.abc import Iterator
from itertools import accumulate

from edge_agent.simulator.tables import LIFTS, RUN_LENGTHS, USUAL_RUN

LONGEST_PAUSE = 29.5 * 60  # seconds; half an hour of silence ends an episode
_LARGEST = 320
_RECALL = 0.32
_SINGLE_MINDED = 0.1
_FIRST_PAUSE_CHANCE, _PAUSE_CHANCE = 0.25, 0.49
_MANY = 16  # alarms; where they are more, they also come faster
FLOOD_SIZES = (200, 1849)
_FLOOD_SECONDS = (4 * 60, 15 * 60)


class CodeSequence:
    """Chooses which code takes the next turn, given the weights of the day."""

    def __init__(self, codes: tuple[int, ...], weights: list[float]) -> None:
        self._codes = codes
        self._weights = weights
        self._after: dict[int | None, list[float]] = {}

    def next_code(self, code: int | None, die: random.Random) -> int:
        """Return a code other than ``code``, likelier if it tends to follow ``code``."""
        if code not in self._after:
            self._after[code] = list(accumulate(self._weights_after(code)))
        return die.choices(self._codes, cum_weights=self._after[code])[0]

    def _weights_after(self, code: int | None) -> list[float]:
        if code is None:
            return self._weights
        return [
            0.0 if candidate == code else weight * LIFTS.get((code, candidate), 1.0)
            for candidate, weight in zip(self._codes, self._weights, strict=True)
        ]


def episode(
    start: float, typical: float, turns: CodeSequence, die: random.Random, *, first: int
) -> Iterator[tuple[float, int]]:
    """Yield the seconds and codes of an episode from ``start`` on, of any size around ``typical``.

    It opens with ``first``; half an hour of silence would make two of it, so no gap is as long.
    """
    size = min(_LARGEST, max(1, round(die.lognormvariate(0.0, 1.08) * typical)))
    pause_chance = _PAUSE_CHANCE * min(1.0, (_MANY / size) ** 0.45)
    restless = 0.0 if die.random() < _SINGLE_MINDED else 1.0
    moment, code = start, first
    seen = [code]
    yield moment, code
    for number in range(1, size):
        moment += _gap(_FIRST_PAUSE_CHANCE if number == 1 else pause_chance, die)
        if die.random() < restless / RUN_LENGTHS.get(code, USUAL_RUN):
            earlier = [known for known in seen if known != code]
            code = die.choice(earlier) if earlier and die.random() < _RECALL else turns.next_code(code, die)
            seen.append(code)
        yield moment, code


def burst(start: float, code: int, die: random.Random) -> Iterator[tuple[float, int]]:
    """Yield a few alarms of one code in quick succession."""
    moment = start
    yield moment, code
    while die.random() > 1 / RUN_LENGTHS.get(code, USUAL_RUN):
        moment += _gap(0.0, die)
        yield moment, code


def flood(
    start: float, codes: tuple[int, ...], weights: list[float], die: random.Random
) -> Iterator[tuple[float, int]]:
    """Yield hundreds of alarms within minutes, in no order: the machine is back and all is wrong."""
    smallest, largest = FLOOD_SIZES
    size = round(smallest * (largest / smallest) ** die.random())
    seconds = die.uniform(*_FLOOD_SECONDS)
    for code in die.choices(codes, weights, k=size):
        yield start + die.uniform(0.0, seconds), code


def _gap(pause_chance: float, die: random.Random) -> float:
    """Return the seconds to the next alarm: mostly well under a minute or so, at times a pause of many."""
    if die.random() < pause_chance:
        return min(LONGEST_PAUSE, 60 + die.expovariate(1 / (8.2 * 60)))
    return 36 * die.lognormvariate(0.0, 0.55)
