"""Convert windows, holdout sets and evaluation results to the column values of their tables, and back.

Arrays are little-endian bytes without pickles, the same on every machine.
"""

import json
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from forecasting import history
from service.errors import Unavailable
from service.learning.evaluation import EvaluationResult, HoldoutSet
from service.learning.windows import WindowSet

RowValues = dict[str, Any]  # of a row, without the keys that only the database knows

Marks = NDArray[np.uint8]  # of each window: DROPPED, REPLAYED or HELD_OUT
DROPPED, REPLAYED, HELD_OUT = range(3)

_UINT8, _FLOAT32 = np.dtype("u1"), np.dtype("<f4")
_COMPRESSION_LEVEL = 1  # 6 takes twice as long and saves a tenth


def samples_row(windows: WindowSet) -> RowValues:
    """Return windows as a row, compressed together, with only the codes that occur in them."""
    return {"features": history.VERSION, "windows": _compress(windows)}


def samples_from_row(row: Any) -> WindowSet:
    """Return the windows of a row."""
    if row.features != history.VERSION:
        raise Unavailable("The memory was written by another version of Alarmcast; learn its machines anew.")
    return _decompress(row.windows)


def pack_marks(marks: Marks) -> bytes:
    """Return which windows of a row a version keeps."""
    return zlib.compress(_to_bytes(marks, _UINT8), _COMPRESSION_LEVEL)


def unpack_marks(body: bytes) -> Marks:
    """Return what :func:`pack_marks` packed."""
    return np.frombuffer(zlib.decompress(body), dtype=_UINT8)


def holdout_row(holdout: HoldoutSet) -> RowValues:
    """Return a holdout set as a row, its windows compressed together."""
    return samples_row(holdout.windows) | {"base_rate": json.dumps(dict(holdout.base_rate))}


def holdout_from_row(row: Any) -> HoldoutSet:
    """Return a stored holdout set."""
    rates = {int(code): rate for code, rate in json.loads(row.base_rate).items()}
    return HoldoutSet(_decompress(row.windows), rates)


def result_row(result: EvaluationResult) -> RowValues:
    """Return an evaluation result as a row; the version names its targets."""
    return {
        "average_precision": result.average_precision,
        "brier_skill": result.brier_skill,
        "macro_f1": result.macro_f1,
        "by_code": json.dumps(result.by_code),
        "probabilities": zlib.compress(_to_bytes(result.probabilities, _FLOAT32), _COMPRESSION_LEVEL),
    }


def result_from_row(row: Any) -> EvaluationResult:
    """Return a stored evaluation result; the row also has the version's targets."""
    targets = tuple(json.loads(row.targets))
    probabilities = np.frombuffer(zlib.decompress(row.probabilities), dtype=_FLOAT32)
    return EvaluationResult(
        targets=targets,
        probabilities=np.asarray(probabilities).reshape(-1, len(targets)),
        average_precision=row.average_precision,
        brier_skill=row.brier_skill,
        macro_f1=row.macro_f1,
        by_code=json.loads(row.by_code),
    )


def _to_bytes(array: NDArray[Any], dtype: np.dtype[Any]) -> bytes:
    return np.ascontiguousarray(array, dtype=dtype).tobytes()


def _compress(windows: WindowSet) -> bytes:
    occurs = windows.counts.any(axis=0) | windows.outcomes.any(axis=0)
    tracked = windows.history.any(axis=(0, 2))
    if windows.within is not None:
        occurs |= windows.within.any(axis=0)
    arrays = {
        "at": windows.at,
        "codes": windows.codes[occurs],
        "counts": windows.counts[:, occurs],
        "outcomes": windows.outcomes[:, occurs],
        "tracked": windows.tracked[tracked],
        "history": windows.history[:, tracked],
        "context": windows.context,
    }
    if windows.within is not None:
        arrays["within"] = windows.within[:, occurs]
    packed = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    return zlib.compress(packed, _COMPRESSION_LEVEL)


def _decompress(body: bytes) -> WindowSet:
    return WindowSet(**load(zlib.decompress(body)))
