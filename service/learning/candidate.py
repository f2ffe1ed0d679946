"""Learn arrow, commit: all that one learning has brought, on its way to the store."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.http.message import Sentence
from service.learning.evaluation import EvaluationResult, HoldoutSet
from service.learning.memory import TaskMemory

Moments = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RetainedSamples:
    """Which windows of an older machine stay, named by their moments, and nothing else of it changes."""

    replayed: Moments
    held_out: Moments


@dataclass(frozen=True, eq=False)
class Candidate:
    """A version that does not exist yet. It starts from ``parent`` and is committed only while that one serves.

    ``marks`` are its own in every machine's newest exam, ``before`` the champion's in the one made just now.
    ``passed`` is the gate's word, ``reasons`` its sentences, ``undecided`` what exams could not tell. ``notes``
    say what else a person should know.
    """

    machine: str
    parent: int | None
    weights: str
    targets: tuple[int, ...]
    kept: Mapping[str, RetainedSamples]
    task: TaskMemory
    exam: HoldoutSet
    marks: Mapping[str, EvaluationResult]
    before: EvaluationResult | None
    passed: bool
    reasons: tuple[Sentence, ...]
    undecided: tuple[Sentence, ...] = ()
    notes: tuple[Sentence, ...] = ()
    report: dict[str, Any] = field(default_factory=dict)
