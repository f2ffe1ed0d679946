"""A candidate in a file: how the process that trained hands over to the one that may write."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from service.core.candidate import Candidate, StillKept
from service.core.exam import Exam, Marks
from service.core.memory import TaskMemory
from service.errors import TrainingFailed
from service.store.arrays import windows_from_arrays, windows_to_arrays

Arrays = dict[str, NDArray[Any]]


def hand_over(candidate: Candidate, file: Path) -> None:
    """Write a candidate; its weights are in their own file already."""
    arrays: Arrays = {}
    for part, windows in _windows(candidate).items():
        arrays |= windows_to_arrays(windows, f"{part}.")
    for place, kept in enumerate(candidate.kept.values()):
        arrays |= {f"kept.{place}.replayed": kept.replayed, f"kept.{place}.held_out": kept.held_out}
    for place, marks in enumerate(candidate.marks.values()):
        arrays[f"marks.{place}"] = marks.probabilities
    if candidate.before is not None:
        arrays["before"] = candidate.before.probabilities
    about = {
        "machine": candidate.machine,
        "parent": candidate.parent,
        "weights": candidate.weights,
        "targets": candidate.targets,
        "kept": list(candidate.kept),
        "offered": candidate.task.offered,
        "frequency": list(candidate.task.frequency.items()),
        "base_rate": list(candidate.exam.base_rate.items()),
        "marks": [[name, _figures(marks)] for name, marks in candidate.marks.items()],
        "before": None if candidate.before is None else _figures(candidate.before),
        "passed": candidate.passed,
        "reasons": candidate.reasons,
        "undecided": candidate.undecided,
        "report": candidate.report,
    }
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    save_file(contiguous, file, metadata={"candidate": json.dumps(about)})


def take_over(file: Path) -> Candidate:
    """Read a candidate that was handed over."""
    try:
        arrays: Arrays = load_file(file)
        with safe_open(file, framework="np") as opened:
            about: dict[str, Any] = json.loads(opened.metadata()["candidate"])
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise TrainingFailed(f"What the training process left cannot be read: {error}.") from None
    marks = enumerate(about["marks"])
    return Candidate(
        machine=about["machine"],
        parent=about["parent"],
        weights=about["weights"],
        targets=tuple(about["targets"]),
        kept={
            name: StillKept(arrays[f"kept.{place}.replayed"], arrays[f"kept.{place}.held_out"])
            for place, name in enumerate(about["kept"])
        },
        task=TaskMemory(
            windows=windows_from_arrays(arrays, "replayed."),
            held_out=windows_from_arrays(arrays, "held_out."),
            offered=about["offered"],
            frequency=dict(about["frequency"]),
        ),
        exam=Exam(windows_from_arrays(arrays, "exam."), dict(about["base_rate"])),
        marks={name: _marks(figures, arrays[f"marks.{place}"]) for place, (name, figures) in marks},
        before=None if about["before"] is None else _marks(about["before"], arrays["before"]),
        passed=about["passed"],
        reasons=tuple(about["reasons"]),
        undecided=tuple(about["undecided"]),
        report=about["report"],
    )


def _windows(candidate: Candidate) -> dict[str, Any]:
    task = candidate.task
    return {"replayed": task.windows, "held_out": task.held_out, "exam": candidate.exam.windows}


def _figures(marks: Marks) -> dict[str, Any]:
    return {name: value for name, value in vars(marks).items() if name != "probabilities"}


def _marks(figures: dict[str, Any], probabilities: NDArray[np.float32]) -> Marks:
    return Marks(**figures | {"targets": tuple(figures["targets"]), "probabilities": probabilities})
