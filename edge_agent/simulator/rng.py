"""Random numbers of the simulator, the same for the same key in every process."""

import random


def seeded_rng(*key: object) -> random.Random:
    """Return a generator that depends on ``key`` alone; a text seed is the same on every platform."""
    return random.Random("/".join(map(str, key)))  # noqa: S311 - a simulation, not a secret
