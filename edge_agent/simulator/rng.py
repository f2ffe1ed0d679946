"""The simulator's only randomness: dice that fall the same way for the same words, in every process."""

import random


def seeded_rng(*words: object) -> random.Random:
    """Return a generator determined by ``words`` alone.

    Seeded with text, which Python hashes the same way on every platform and in every run.
    """
    return random.Random("/".join(map(str, words)))  # noqa: S311 - a simulation, not a secret
