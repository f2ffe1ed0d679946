"""Arrays as bytes: little-endian, without pickles, the same on every machine."""

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from service.learning.windows import WindowSet

INT32, INT64, FLOAT32 = np.dtype("<i4"), np.dtype("<i8"), np.dtype("<f4")
_LEVEL = 1  # of compression; 6 takes twice as long and leaves a tenth less
_FIELDS = ("at", "codes", "counts", "outcomes", "tracked", "history", "context")


def to_bytes(array: NDArray[Any], kind: np.dtype[Any]) -> bytes:
    """Return an array's numbers; whoever reads them knows their kind and shape."""
    return np.ascontiguousarray(array, dtype=kind).tobytes()


def compress(array: NDArray[Any]) -> bytes:
    """Return float32 numbers compressed."""
    return zlib.compress(to_bytes(array, FLOAT32), _LEVEL)


def decompress(body: bytes) -> NDArray[np.float32]:
    """Return what ``squeezed`` took, flat."""
    return np.frombuffer(zlib.decompress(body), dtype=FLOAT32)


def windows_to_bytes(windows: WindowSet) -> bytes:
    """Return a table of windows as one compressed body."""
    arrays = {name: np.ascontiguousarray(getattr(windows, name)) for name in _FIELDS}
    return zlib.compress(save(arrays), _LEVEL)


def windows_from_bytes(body: bytes) -> WindowSet:
    """Return the table that was stored."""
    arrays = load(zlib.decompress(body))
    return WindowSet(**{name: arrays[name] for name in _FIELDS})
