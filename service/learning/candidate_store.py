"""A candidate as the rows that it becomes: packed by the process that trained, so that who serves only writes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from forecasting import history
from service.http.message import Sentence
from service.learning.array_codec import FLOAT32, INT32, compress, to_bytes, windows_to_bytes
from service.learning.candidate import Candidate, RetainedSamples
from service.learning.evaluation import EvaluationResult, HoldoutSet
from service.learning.windows import WindowSet

RowValues = dict[str, Any]  # of a row, without those that only the database can know


@dataclass(frozen=True, eq=False)
class CandidateRows:
    """What ``Candidate`` says, in cells: plain values and bytes."""

    machine: str
    parent: int | None
    weights: str
    targets: tuple[int, ...]
    kept: Mapping[str, RetainedSamples]
    task: RowValues
    replayed: list[RowValues]
    held_out: list[RowValues]
    exam: RowValues
    marks: Mapping[str, RowValues]
    before: RowValues | None
    passed: bool
    reasons: tuple[Sentence, ...]
    undecided: tuple[Sentence, ...]
    notes: tuple[Sentence, ...]
    report: dict[str, Any]

    @classmethod
    def from_candidate(cls, candidate: Candidate) -> "CandidateRows":
        """Pack a candidate."""
        task = candidate.task
        return cls(
            machine=candidate.machine,
            parent=candidate.parent,
            weights=candidate.weights,
            targets=candidate.targets,
            kept=candidate.kept,
            task={"offered": task.offered, "frequency": json.dumps(dict(task.frequency))},
            replayed=_samples(task.windows),
            held_out=_samples(task.held_out),
            exam=_exam(candidate.exam),
            marks={name: _marks(one) for name, one in candidate.marks.items()},
            before=None if candidate.before is None else _marks(candidate.before),
            passed=candidate.passed,
            reasons=candidate.reasons,
            undecided=candidate.undecided,
            notes=candidate.notes,
            report=candidate.report,
        )


def _samples(windows: WindowSet) -> list[RowValues]:
    """Return a row for each window, with only the codes that left a trace in it."""
    remembered = np.any(windows.history != 0, axis=2)
    return [
        {
            "at_us": int(windows.at[place]),
            "features": history.VERSION,
            "codes": to_bytes(windows.codes[seen], INT32),
            "counts": to_bytes(windows.counts[place][seen], INT32),
            "outcomes": to_bytes(windows.codes[windows.outcomes[place]], INT32),
            "tracked": to_bytes(windows.tracked[remembered[place]], INT32),
            "history": to_bytes(windows.history[place][remembered[place]], FLOAT32),
            "context": to_bytes(windows.context[place], FLOAT32),
        }
        for place, seen in enumerate(windows.counts > 0)
    ]


def _exam(exam: HoldoutSet) -> RowValues:
    return {
        "features": history.VERSION,
        "base_rate": json.dumps(dict(exam.base_rate)),
        "windows": windows_to_bytes(exam.windows),
    }


def _marks(marks: EvaluationResult) -> RowValues:
    return {
        "average_precision": marks.average_precision,
        "brier_skill": marks.brier_skill,
        "macro_f1": marks.macro_f1,
        "by_code": json.dumps(marks.by_code),
        "probabilities": compress(marks.probabilities),
    }
