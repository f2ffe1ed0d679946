"""Read both published layouts of ALPI, or reject a file in one sentence."""

import csv
import gzip
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TextIO

import numpy as np
from numpy.typing import NDArray

from forecasting.series import AlarmSeries
from service.errors import InputRejected
from service.learning.windows import WindowSet
from wire.timestamps import to_us

_PARTS: Final = ("train", "test")
_HEADER: Final = ["timestamp", "alarm", "serial"]
_HOUR: Final = 3_600_000_000


def read_windows(path: Path) -> tuple[dict[str, WindowSet], dict[str, WindowSet]]:
    """Read the publisher's windows: rows of codes padded with noughts, repeats collapsed; train and test.

    The file has the order of windows and no times, so an hour is counted from each to the next.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise InputRejected(f"{path} is not a file of windows that numpy can read.") from error
    missing = [name for part in _PARTS for name in _names(part) if name not in arrays]
    if missing:
        raise InputRejected(f"{path} is not a file of ALPI windows: it lacks {', '.join(missing)}.")
    return _part(path, arrays, "train"), _part(path, arrays, "test")


def _names(part: str) -> tuple[str, str, str]:
    return f"x_{part}", f"y_{part}", f"stratify_{part}"


def _part(path: Path, arrays: dict[str, NDArray[np.generic]], part: str) -> dict[str, WindowSet]:
    x, y, serial = (arrays[name] for name in _names(part))
    numbers = all(np.issubdtype(array.dtype, np.integer) for array in (x, y, serial))
    if not numbers or x.ndim != 2 or y.ndim != 2 or serial.ndim != 1 or not len(x) == len(y) == len(serial):  # noqa: PLR2004
        raise InputRejected(f"{path}: x_{part}, y_{part} and stratify_{part} do not belong together.")
    return {
        str(name): _windows(x[serial == name].astype(np.int64), y[serial == name].astype(np.int64))
        for name in np.unique(serial)
    }


def _windows(x: NDArray[np.int64], y: NDArray[np.int64]) -> WindowSet:
    codes = np.unique(np.concatenate([x.ravel(), y.ravel()]))
    codes = codes[codes != 0]
    rows = len(x)
    return WindowSet(
        at=np.arange(rows, dtype=np.int64) * _HOUR,
        codes=codes,
        counts=np.stack([np.sum(x == code, axis=1, dtype=np.int32) for code in codes], axis=1),
        outcomes=np.stack([np.any(y == code, axis=1) for code in codes], axis=1),
        tracked=codes[:0],
        history=np.zeros((rows, 0, 0), dtype=np.float16),
        context=np.zeros((rows, 0), dtype=np.float16),
    )


def read_log(path: Path) -> dict[str, AlarmSeries]:
    """Read raw alarms, ``timestamp,alarm,serial``, plain or gzipped; naive timestamps are taken as UTC."""
    times: dict[str, list[int]] = {}
    codes: dict[str, list[int]] = {}
    try:
        with _opened(path) as lines:
            rows = csv.reader(lines)
            if [name.strip().lower() for name in next(rows, [])] != _HEADER:
                raise InputRejected(f"{path} does not start with the line {','.join(_HEADER)}.")
            for number, row in enumerate(rows, start=2):
                serial, at, code = _alarm(path, number, row)
                times.setdefault(serial, []).append(at)
                codes.setdefault(serial, []).append(code)
    except (OSError, UnicodeDecodeError, EOFError, csv.Error) as error:
        raise InputRejected(f"{path} cannot be read as a log of alarms.") from error
    if not times:
        raise InputRejected(f"{path} holds no alarms.")
    return {serial: _series(times[serial], codes[serial]) for serial in times}


def _alarm(path: Path, number: int, row: list[str]) -> tuple[str, int, int]:
    try:
        timestamp, code, serial = row
        at = datetime.fromisoformat(timestamp)
        return serial.strip(), to_us(at if at.tzinfo else at.replace(tzinfo=UTC)), int(code)
    except ValueError as error:
        raise InputRejected(f"Line {number} of {path} is not a timestamp, an alarm and a serial.") from error


def _series(times: list[int], codes: list[int]) -> AlarmSeries:
    order = np.lexsort((codes, times))
    return AlarmSeries(np.array(times, dtype=np.int64)[order], np.array(codes, dtype=np.int64)[order])


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
            yield lines
    else:
        with path.open(encoding="utf-8", newline="") as lines:
            yield lines
