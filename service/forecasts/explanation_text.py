"""What an explanation points at, in words: which alarms came before a moment, when, and how regularly."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final, NamedTuple

from forecasting.forecaster import ObservedSeries
from forecasting.series import AlarmSeries, from_us
from forecasting.window import WindowSpec, input_window
from service.humanize import ago, duration, plural, times
from service.machines.catalogue import CatalogueEntry, unknown_code
from wire.enums import PartKind

_DAYS = 7
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


@dataclass(frozen=True, eq=False)
class ExplanationRenderer:
    """Speaks of one machine as of ``at``, up to which ``record`` reaches.

    ``reach`` is how far back the model reads, ``usual`` the past moments it is compared with, and ``shares``
    what each input code is of the evidence, now and usually.
    """

    record: ObservedSeries
    at: datetime
    spec: WindowSpec
    reach: timedelta
    usual: Sequence[datetime]
    shares: Mapping[int, tuple[float, float]]
    entries: Mapping[int, CatalogueEntry]

    def render(self, pull: Contribution) -> RenderedContribution:
        """Put words and figures to a pull."""
        if pull.kind is PartKind.OTHERS:
            together = f"{plural(pull.number, 'other factor')}."
            return RenderedContribution(pull.kind, None, "Everything else", pull.contribution, together)
        series = self.record.series if pull.code is None else self._of(pull.code)
        seen = len(input_window(series, self.at, self.spec))
        last = from_us(int(series.times[-1])) if len(series) else None
        if pull.code is None:
            sentence = self._condition(seen, last)
            return RenderedContribution(
                pull.kind, None, "The machine as a whole", pull.contribution, sentence, seen, last
            )
        entry = self.entries.get(pull.code) or unknown_code(pull.code)
        if pull.kind is PartKind.RECENCY:
            told = self._recency(last)
        elif pull.kind is PartKind.HABIT:
            told = self._habit(series)
        else:
            told = self._presence(pull.code, seen, last)
        now, usually = self.shares[pull.code] if pull.kind is PartKind.ALARM else (None, None)
        return RenderedContribution(
            pull.kind,
            pull.code,
            entry.text,
            pull.contribution,
            f"{_name(entry)} {told}.",
            seen,
            last,
            None if now is None else round(now, DIGITS),
            None if usually is None else round(usually, DIGITS),
        )

    def _presence(self, code: int, seen: int, last: datetime | None) -> str:
        if not seen or last is None:
            return f"did not occur in the last {duration(self.spec.lookback)}, unlike usual"
        told = f"occurred {times(seen)}, last {ago(self.at - last)}"
        if not self.usual:
            return told
        now, usually = self.shares[code]
        return f"{told}: a {'larger' if now > usually else 'smaller'} share of the alarms than usual"

    def _recency(self, last: datetime | None) -> str:
        if last is None or last < self.at - self.reach:
            return f"has not occurred in the last {duration(self.reach)}"
        return f"last occurred {ago(self.at - last)}"

    def _habit(self, series: AlarmSeries) -> str:
        starts = [self.at - timedelta(days=day) for day in range(1, _DAYS + 1)]
        observed = [start for start in starts if start >= self.record.since]
        if not observed:
            return "has been observed for less than a day"
        # Only what lies before this moment: a horizon longer than a day would reach beyond it.
        held = sum(len(series.between(start, min(start + self.spec.horizon, self.at))) > 0 for start in observed)
        ahead = duration(self.spec.horizon)
        return f"occurred in this period of {ahead} on {held} of the last {plural(len(observed), 'day')}"

    def _condition(self, seen: int, last: datetime | None) -> str:
        told = f"The machine raised {plural(seen, 'alarm')} in the last {duration(self.spec.lookback)}"
        if self.usual:
            told += f", usually {self._usually_seen}"
        return told + (f"; last {ago(self.at - last)}." if last else ".")

    @cached_property
    def _usually_seen(self) -> int:
        each = [len(input_window(self.record.series, one, self.spec)) for one in self.usual]
        return round(sum(each) / len(each))

    def _of(self, code: int) -> AlarmSeries:
        its = self.record.series.codes == code
        return AlarmSeries(self.record.series.times[its], self.record.series.codes[its])


def _name(entry: CatalogueEntry) -> str:
    nameless = entry == unknown_code(entry.code)
    return entry.text if nameless else f"{entry.code} {entry.text}"


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
