"""The results of one run, and their summary over all seeds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import nan
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from service.learning.metrics import Reliability, average_score, forgetting, macro

GROUPS: Final = ("total", "low", "medium", "high")
_TABLES: Final = ("f1", "average_precision", "brier_skill", "reliability")
Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RunScores:
    """Machines by codes of F1 and average precision, Brier skill by machine, and of all forecasts the reliability.

    ``notifications`` are the figures of what people would be notified of, by name.
    """

    f1: Reals
    average_precision: Reals
    brier_skill: Reals
    reliability: Reliability
    notifications: dict[str, float]


@dataclass(frozen=True, eq=False)
class ResourceUse:
    """What learning took and left: seconds by task, and of the last memory tasks by codes and windows by task."""

    memory_seconds: list[float]
    training_seconds: list[float]
    kept: Reals
    sizes: list[int]
    divergence: float


@dataclass(frozen=True, eq=False)
class Run:
    """One strategy learned with one seed; ``f1`` and ``average_precision`` are updates by machines by codes.

    ``brier_skill`` is updates by machines, ``reliability`` the last update's bins: forecast, observed, count.
    A baseline has one update, and nothing was learned.
    """

    name: str
    seed: int
    f1: Reals
    average_precision: Reals
    brier_skill: Reals
    reliability: Reals
    calibration_error: float
    notifications: dict[str, float]
    learned: ResourceUse | None = None

    @classmethod
    def of(cls, name: str, seed: int, scores: Sequence[RunScores], learned: ResourceUse | None = None) -> "Run":
        """Return a run from the scores after each update."""
        curve = scores[-1].reliability
        return cls(
            name=name,
            seed=seed,
            f1=np.array([score.f1 for score in scores]),
            average_precision=np.array([score.average_precision for score in scores]),
            brier_skill=np.array([score.brier_skill for score in scores]),
            reliability=np.array([curve.forecast, curve.observed, curve.count]),
            calibration_error=curve.expected_calibration_error,
            notifications=scores[-1].notifications,
            learned=learned,
        )

    def as_json(self) -> dict[str, Any]:
        """Return plain numbers and lists; what is not a number becomes null."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Run":
        """Build a run from what ``as_json`` gave."""
        learned = stored["learned"]
        tables = {name: _table(stored[name]) for name in _TABLES}
        return cls(
            name=stored["name"],
            seed=stored["seed"],
            **tables,
            calibration_error=stored["calibration_error"],
            notifications={name: nan if v is None else v for name, v in stored["notifications"].items()},
            learned=learned and ResourceUse(**{**learned, "kept": _table(learned["kept"])}),
        )


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How runs are scored: the codes of each machine's holdout set, and the group of each code."""

    support: NDArray[np.bool_]
    groups: Mapping[str, NDArray[np.bool_]]

    def matrix(self, values: Reals, group: str = "total", *, absent: bool = False) -> Reals:
        """Return updates by machines of the mean over codes of a group.

        Codes without a positive in a machine's holdout set are left out, or with ``absent`` count as they scored.
        """
        among = self.groups[group]
        support = np.ones_like(self.support) if absent else self.support
        return np.array([[macro(v, s, among=among) for v, s in zip(u, support, strict=True)] for u in values])


@dataclass(frozen=True)
class Figure:
    """A mean over seeds and the standard deviation between them."""

    mean: float
    spread: float


@dataclass(frozen=True)
class ResultRow:
    """A line of the table: one strategy or baseline over all its seeds.

    Who learned nothing has no ``forgetting`` of any group, of precision neither, and no memory to update.
    """

    name: str
    seeds: int
    macro_f1: Mapping[str, Figure]
    macro_f1_all_labels: Figure
    forgetting: Mapping[str, Figure]
    average_precision: Figure
    forgetting_of_precision: Figure | None
    brier_skill: Figure
    calibration_error: Figure
    notifications: Mapping[str, Figure]
    memory_seconds: Figure | None


def row(runs: Sequence[Run], evaluation: Evaluation) -> ResultRow:
    """Return what the runs of one strategy say together."""
    learned = runs[0].learned is not None

    def over(value: Callable[[Run], float]) -> Figure:
        values = np.array([value(run) for run in runs])
        return Figure(float(values.mean()), float(values.std()))

    def lost(group: str) -> Figure:
        return over(lambda run: forgetting(evaluation.matrix(run.f1, group)))

    return ResultRow(
        name=runs[0].name,
        seeds=len(runs),
        macro_f1={
            group: over(lambda run, group=group: average_score(evaluation.matrix(run.f1, group)))  # type: ignore[misc]
            for group in GROUPS
        },
        macro_f1_all_labels=over(lambda run: average_score(evaluation.matrix(run.f1, absent=True))),
        forgetting={group: lost(group) for group in GROUPS} if learned else {},
        average_precision=over(lambda run: average_score(evaluation.matrix(run.average_precision))),
        forgetting_of_precision=(
            over(lambda run: forgetting(evaluation.matrix(run.average_precision))) if learned else None
        ),
        brier_skill=over(lambda run: average_score(run.brier_skill)),
        calibration_error=over(lambda run: run.calibration_error),
        notifications={
            name: over(lambda run, name=name: run.notifications[name])  # type: ignore[misc]
            for name in runs[0].notifications
        },
        memory_seconds=over(_memory_seconds) if learned else None,
    )


def groups(frequency: NDArray[np.floating]) -> dict[str, NDArray[np.bool_]]:
    """Return which codes are common, medium and rare, by their share of training windows.

    The paper's 15 codes are 4 high, 5 medium and 6 low; other numbers of codes keep these proportions.
    """
    codes = len(frequency)
    order = np.argsort(-frequency, kind="stable")
    edges = {"high": (0, 4), "medium": (4, 9), "low": (9, 15)}
    masks = {"total": np.ones(codes, dtype=np.bool_)}
    for name, (start, end) in edges.items():
        mask = np.zeros(codes, dtype=np.bool_)
        mask[order[round(codes * start / 15) : round(codes * end / 15)]] = True
        masks[name] = mask
    return masks


def _memory_seconds(run: Run) -> float:
    return sum(run.learned.memory_seconds) if run.learned else 0.0


def _table(entries: list[Any]) -> Reals:
    return np.array(entries, dtype=np.float64)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
