"""Convert windows, holdout sets and evaluation results to the column values of their tables, and back.

Arrays are little-endian bytes without pickles, the same on every machine.
"""

import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from forecasting import history
from service.errors import Unavailable
from service.learning.evaluation import EvaluationResult, HoldoutSet
from service.learning.windows import WindowSet

RowValues = dict[str, Any]  # of a row, without the keys that only the database knows

_INT32, _FLOAT32 = np.dtype("<i4"), np.dtype("<f4")
_COMPRESSION_LEVEL = 1  # 6 takes twice as long and saves a tenth
_FIELDS = ("at", "codes", "counts", "outcomes", "tracked", "history", "context")


def sample_rows(windows: WindowSet) -> list[RowValues]:
    """Return a row for each window, with only the codes that occur in it."""
    tracked = np.any(windows.history != 0, axis=2)
    return [
        {
            "at_us": int(windows.at[index]),
            "features": history.VERSION,
            "codes": _to_bytes(windows.codes[seen], _INT32),
            "counts": _to_bytes(windows.counts[index][seen], _INT32),
            "outcomes": _to_bytes(windows.codes[windows.outcomes[index]], _INT32),
            "tracked": _to_bytes(windows.tracked[tracked[index]], _INT32),
            "history": _to_bytes(windows.history[index][tracked[index]], _FLOAT32),
            "context": _to_bytes(windows.context[index], _FLOAT32),
        }
        for index, seen in enumerate(windows.counts > 0)
    ]


def windows_from_rows(rows: Sequence[Any]) -> WindowSet:
    """Return stored windows as one set, over every code that any of them has."""
    if any(row.features != history.VERSION for row in rows):
        raise Unavailable("The memory was written by another version of Alarmcast; learn its machines anew.")
    (seen, seen_rows), (outcome, outcome_rows), (tracked, tracked_rows) = (
        _ragged([getattr(row, name) for row in rows]) for name in ("codes", "outcomes", "tracked")
    )
    figures = np.frombuffer(b"".join(row.history for row in rows), dtype=_FLOAT32)
    codes, tracked_codes = np.union1d(seen, outcome), np.unique(tracked)
    width = len(figures) // max(len(tracked), 1)
    counts = np.zeros((len(rows), len(codes)), dtype=np.int32)
    outcomes = np.zeros((len(rows), len(codes)), dtype=np.bool_)
    past = np.zeros((len(rows), len(tracked_codes), width), dtype=np.float32)
    counts[seen_rows, np.searchsorted(codes, seen)] = _ints(b"".join(row.counts for row in rows))
    outcomes[outcome_rows, np.searchsorted(codes, outcome)] = True
    past[tracked_rows, np.searchsorted(tracked_codes, tracked)] = figures.reshape(len(tracked), width)
    context = [np.frombuffer(row.context, dtype=_FLOAT32) for row in rows]
    return WindowSet(
        at=np.array([row.at_us for row in rows], dtype=np.int64),
        codes=codes,
        counts=counts,
        outcomes=outcomes,
        tracked=tracked_codes,
        history=past,
        context=np.stack(context) if context else np.zeros((0, 0), dtype=np.float32),
    )


def holdout_row(holdout: HoldoutSet) -> RowValues:
    """Return a holdout set as a row, its windows compressed together."""
    arrays = {name: np.ascontiguousarray(getattr(holdout.windows, name)) for name in _FIELDS}
    return {
        "features": history.VERSION,
        "base_rate": json.dumps(dict(holdout.base_rate)),
        "windows": zlib.compress(save(arrays), _COMPRESSION_LEVEL),
    }


def holdout_from_row(row: Any) -> HoldoutSet:
    """Return a stored holdout set."""
    arrays = load(zlib.decompress(row.windows))
    rates = {int(code): rate for code, rate in json.loads(row.base_rate).items()}
    return HoldoutSet(WindowSet(**{name: arrays[name] for name in _FIELDS}), rates)


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


def _ints(body: bytes) -> NDArray[np.int64]:
    return np.frombuffer(body, dtype=_INT32).astype(np.int64)


def _ragged(cells: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Return the integers of many cells end to end, and the row of each."""
    lengths = [len(cell) // _INT32.itemsize for cell in cells]
    return _ints(b"".join(cells)), np.repeat(np.arange(len(cells)), lengths)
