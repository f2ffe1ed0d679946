"""Garbage collector and malloc settings of the service's processes."""

import ctypes
import gc

_M_ARENA_MAX, _M_MMAP_THRESHOLD = -8, -3  # of glibc's mallopt
_ARENAS = 2
_MMAP_FROM = 1 << 20  # bytes; a larger array is mapped by itself and goes back to the system when it is freed
_GENERATION_0_THRESHOLD = 50_000  # new objects; one commit makes a few thousand, nearly all short-lived


def limit_heaps() -> None:
    """Let all threads share two heaps and keep large arrays out of them.

    glibc keeps up to eight heaps per core, and after one large array was freed it takes the next from a heap.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, _ARENAS)
        mallopt(_M_MMAP_THRESHOLD, _MMAP_FROM)


def release_free_memory() -> None:
    """Return freed memory to the system; glibc keeps free blocks between used ones."""
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)


def freeze() -> None:
    """Exempt everything that exists after start-up from garbage collection."""
    gc.freeze()
    gc.set_threshold(_GENERATION_0_THRESHOLD)
