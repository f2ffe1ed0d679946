"""A candidate as the training process hands it over: one file of rows, ready to be committed.

The training process packs the rows, so that the serving process only writes them. The file is one line of JSON, in
which a placeholder stands for each value of bytes, followed by these bytes end to end.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from service.errors import TrainingFailed
from service.http.message import Sentence
from service.learning.evaluation import EvaluationResult, HoldoutSet
from service.learning.memory import TaskMemory
from service.learning.row_codec import (
    HELD_OUT,
    REPLAYED,
    Marks,
    RowValues,
    holdout_row,
    pack_marks,
    result_row,
    samples_row,
)
from service.learning.windows import concat_windows

MAX_BYTES: Final = 512 << 20  # the serving process reads the file whole
_SENTENCES: Final = ("reasons", "undecided", "notes")
_PLACEHOLDER: Final = "bytes"  # its only key; no row has a single column


@dataclass(frozen=True, eq=False)
class RetainedSamples:
    """Which of the parent's windows of an older machine stay in memory; nothing else of it changes."""

    replayed: NDArray[np.int64]
    held_out: NDArray[np.int64]

    @classmethod
    def between(cls, before: TaskMemory, after: TaskMemory) -> Self:
        """Return the positions of the windows that stay; both are in time order."""
        return cls(
            np.searchsorted(before.windows.at, after.windows.at),
            np.searchsorted(before.held_out.at, after.held_out.at),
        )

    def marks(self, before: Marks) -> Marks:
        """Return the marks of the new version from those of its parent."""
        marks = np.zeros_like(before)
        for mark, places in ((REPLAYED, self.replayed), (HELD_OUT, self.held_out)):
            marks[np.flatnonzero(before == mark)[places]] = mark
        return marks


@dataclass(frozen=True, eq=False)
class Candidate:
    """A version that is not committed yet. It starts from ``parent`` and is committed only while that one serves.

    ``results`` are its own on every machine's newest holdout set, ``before`` the champion's on the new one.
    ``undecided`` says what the holdout sets could not show, ``notes`` what else a user should know.
    """

    machine: str
    parent: int | None
    weights: str
    targets: tuple[int, ...]
    retained: Mapping[str, RetainedSamples]
    task: RowValues
    samples: RowValues
    holdout: RowValues
    results: Mapping[str, RowValues]
    before: RowValues | None
    passed: bool
    reasons: tuple[Sentence, ...]
    undecided: tuple[Sentence, ...] = ()
    notes: tuple[Sentence, ...] = ()
    report: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def pack(
        cls,
        *,
        task: TaskMemory,
        holdout: HoldoutSet,
        results: Mapping[str, EvaluationResult],
        before: EvaluationResult | None,
        **values: Any,
    ) -> Self:
        """Return a candidate with the new machine's memory, holdout set and results as rows."""
        marks = np.repeat(np.array([REPLAYED, HELD_OUT], np.uint8), [len(task.windows), len(task.held_out)])
        return cls(
            task={
                "offered": task.offered,
                "frequency": json.dumps(dict(task.frequency)),
                "kept": pack_marks(marks),
            },
            samples=samples_row(concat_windows([task.windows, task.held_out])),
            holdout=holdout_row(holdout),
            results={name: result_row(result) for name, result in results.items()},
            before=None if before is None else result_row(before),
            **values,
        )

    def write(self, file: Path) -> None:
        """Write the candidate; its weights are in a file of their own already."""
        retained = {
            name: [samples.replayed.tolist(), samples.held_out.tolist()] for name, samples in self.retained.items()
        }
        sentences = {name: [sentence.as_json() for sentence in getattr(self, name)] for name in _SENTENCES}
        body: list[bytes] = []
        values = _extract_bytes(vars(self) | {"retained": retained} | sentences, body)
        head = json.dumps({"size": sum(map(len, body)), "candidate": values}).encode() + b"\n"
        _check_size(len(head) + sum(map(len, body)))
        with file.open("wb") as opened:
            opened.write(head)
            opened.writelines(body)

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read a candidate, or raise :class:`TrainingFailed` if the file is not whole."""
        try:
            _check_size(file.stat().st_size)
            with file.open("rb") as opened:
                head = json.loads(opened.readline())
                body = opened.read()
            packed, size = head["candidate"], head["size"]
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise TrainingFailed(f"The result of the training process cannot be read: {error}.") from None
        if len(body) != size:
            raise TrainingFailed(
                f"The result of the training process cannot be read: {len(body)} of {size} bytes."
            )
        values = _restore_bytes(packed, body)
        retained = {
            name: RetainedSamples(*(np.array(places, dtype=np.int64) for places in both))
            for name, both in values["retained"].items()
        }
        sentences = {name: tuple(map(Sentence.from_json, values[name])) for name in _SENTENCES}
        return cls(**values | {"retained": retained, "targets": tuple(values["targets"])} | sentences)


def _check_size(size: int) -> None:
    if size > MAX_BYTES:
        raise TrainingFailed(
            f"The training process made {size >> 20} MB to be stored, and {MAX_BYTES >> 20} MB are allowed. "
            "Lower ALARMCAST_MAX_CODES_PER_MACHINE or ALARMCAST_MEMORY_WINDOWS."
        )


def _extract_bytes(value: Any, body: list[bytes]) -> Any:
    """Return a value as JSON can hold it, and append its bytes to ``body``."""
    if isinstance(value, bytes):
        body.append(value)
        return {_PLACEHOLDER: len(value)}
    if isinstance(value, dict):
        return {name: _extract_bytes(item, body) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_extract_bytes(item, body) for item in value]
    return value


def _restore_bytes(packed: Any, body: bytes) -> Any:
    """Return a value with its bytes, which come in the order in which they were extracted."""
    offset = 0

    def restore(value: Any) -> Any:
        nonlocal offset
        if isinstance(value, dict):
            if value.keys() == {_PLACEHOLDER}:
                offset += value[_PLACEHOLDER]
                return body[offset - value[_PLACEHOLDER] : offset]
            return {name: restore(item) for name, item in value.items()}
        return [restore(item) for item in value] if isinstance(value, list) else value

    return restore(packed)
