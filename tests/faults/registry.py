"""The matrix as functions: a new row is one function with ``@fault`` in a module that matrix.py names."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.faults.environment import FaultEnvironment


@dataclass(frozen=True)
class Effort:
    """How often a fault is injected, and, where it lasts, for how many seconds."""

    runs: int
    seconds: float = 0.0


# Injects a fault ``effort.runs`` times and yields the seconds each recovery took.
Inject = Callable[[FaultEnvironment, Effort], Iterator[float]]


@dataclass(frozen=True)
class Fault:
    """One row of the matrix."""

    name: str
    inject: Inject
    quick: Effort | None
    full: Effort


FAULTS: dict[str, Fault] = {}


def fault(name: str, *, quick: Effort | None, full: Effort) -> Callable[[Inject], Inject]:
    """Add a row to the matrix; ``quick=None`` leaves it to the full suite."""

    def register(inject: Inject) -> Inject:
        FAULTS[name] = Fault(name, inject, quick, full)
        return inject

    return register
