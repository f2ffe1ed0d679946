"""Why one alarm is forecast as it is: what pulls at it, the small pulls gathered so that the parts still sum."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from wire.enums import PartKind

DIGITS: Final = 4


class Contribution(NamedTuple):
    """By how much something moves a forecast's log-odds; ``number`` is how many it stands for."""

    kind: PartKind
    code: int | None
    contribution: float
    number: int = 1


@dataclass(frozen=True)
class RenderedContribution:
    """A pull in words and figures; ``share`` and ``usual_share`` only where it is a share of the evidence."""

    kind: PartKind
    code: int | None
    text: str
    contribution: float
    sentence: str
    seen: int | None = None
    last_seen: datetime | None = None
    share: float | None = None
    baseline_share: float | None = None


@dataclass(frozen=True)
class AlarmExplanation:
    """One target code: what is said now, what is usual, and the parts that make the difference."""

    code: int
    text: str
    severity: str
    probability: float
    baseline_probability: float
    log_odds: float
    baseline_log_odds: float
    contributions: list[RenderedContribution]


def top_k_with_rest(pulls: Iterable[Contribution], *, keep: int, whole: float) -> list[Contribution]:
    """Return the ``keep`` largest pulls and all others as one, rounded, so that they still sum to ``whole``.

    ``whole`` is rounded already. What rounding leaves goes to the others, or to the largest if there are no
    others. A pull of nothing is left out.
    """
    moved = sorted((pull for pull in pulls if pull.contribution), key=lambda pull: -abs(pull.contribution))
    named = [pull._replace(contribution=round(pull.contribution, DIGITS)) for pull in moved[:keep]]
    left = round(whole - sum(pull.contribution for pull in named), DIGITS)
    if len(moved) > len(named):
        return [*named, Contribution(PartKind.OTHERS, None, left, len(moved) - len(named))]
    if named:
        named[0] = named[0]._replace(contribution=round(named[0].contribution + left, DIGITS))
    return named
