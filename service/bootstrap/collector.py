"""Python's garbage collector, told what it may leave alone."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_YOUNG = 50_000  # new objects between two looks: a commit makes a few thousand, nearly all of them soon gone


@contextmanager
def undisturbed() -> Iterator[None]:
    """Keep it away while modules are imported, and from what they are ever after: modules make no garbage."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def settle() -> None:
    """Let it look at what comes and goes from now on, and never again at what the start has built."""
    gc.freeze()
    gc.set_threshold(_YOUNG)
