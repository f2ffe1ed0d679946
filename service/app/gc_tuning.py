"""Memory of the process: what the garbage collector may leave alone, and how many heaps malloc keeps."""

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager

_M_ARENA_MAX = -8  # of glibc's mallopt
_ARENAS = 2
_GENERATION_0_THRESHOLD = (
    50_000  # new objects between two looks: a commit makes a few thousand, nearly all of them soon gone
)


@contextmanager
def gc_disabled() -> Iterator[None]:
    """Keep it away while modules are imported, and from what they are ever after: modules make no garbage."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def limit_heaps() -> None:
    """Let all threads share a few heaps; glibc would keep up to eight a core, each as large as it ever was."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, _ARENAS)


def release_free_memory() -> None:
    """Return freed memory to the system; glibc keeps what lies between pieces that are still in use."""
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)


def freeze() -> None:
    """Let it look at what comes and goes from now on, and never again at what the start has built."""
    gc.freeze()
    gc.set_threshold(_GENERATION_0_THRESHOLD)
