"""Scoreboard: accuracy of served forecasts by machine, code, version or day."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from service.machines.models import Machine, MachineReader, chosen_machines, chosen_span
from service.scoring.models import ScoredForecast
from service.scoring.scores import ScoreSummary, ScoreSums, by_day, concat, count, summarize
from service.scoring.service import ScoringService
from wire.enums import Grouping, Horizon
from wire.identity import MachineId
from wire.timestamps import from_us

DEFAULT_SPAN = timedelta(days=30)
MAX_SPAN = timedelta(days=400)


@dataclass(frozen=True)
class ScoreboardQuery:
    """Filter and grouping; by default all machines and the last 30 days."""

    by: Grouping = Grouping.MACHINE
    site: str | None = None
    machine: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    status: str | None = None
    horizon: Horizon = Horizon.MAIN


@dataclass(frozen=True)
class ScoreKey:
    """Key of a row; None means all."""

    machine: MachineId | None = None
    code: int | None = None
    version: int | None = None
    day: date | None = None


@dataclass(frozen=True)
class ScoreboardResult:
    """The scores of a span; ``pending`` counts forecasts that are not scored yet."""

    since: datetime
    until: datetime
    pending: int
    total: ScoreSummary | None
    rows: list[tuple[ScoreKey, ScoreSummary]]


@dataclass(frozen=True)
class Scoreboard:
    """Reads outcomes of one machine at a time, so that a long span of a large fleet needs little memory."""

    machines: MachineReader
    scoring: ScoringService

    def compute(self, query: ScoreboardQuery) -> ScoreboardResult:
        """Return the scores of a query."""
        since, until = self.span(query.since, query.until)
        machines = chosen_machines(self.machines, query.site, query.machine)
        sums_by_key: dict[ScoreKey, ScoreSums] = {}
        total: ScoreSums | None = None
        for machine in machines:
            for key, sums in self._sums(machine, since, until, query):
                if key is None:
                    total = sums if total is None else total + sums
                else:
                    sums_by_key[key] = sums_by_key[key] + sums if key in sums_by_key else sums
        summary = None if total is None else summarize(total)
        scored = 0 if summary is None else summary.forecasts + summary.unobserved
        ended = self.scoring.ended(machines, since, until, query.horizon, status=query.status)
        return ScoreboardResult(
            since,
            until,
            max(ended - scored, 0),
            summary,
            [(key, summarize(sums)) for key, sums in sorted(sums_by_key.items(), key=_sort_key)],
        )

    def page(
        self,
        machine: MachineId,
        since: datetime | None,
        until: datetime | None,
        *,
        limit: int,
        before_us: int | None = None,
    ) -> tuple[list[ScoredForecast], bool]:
        """Return a machine's scored forecasts, newest first, and whether there are more than ``limit``."""
        enrolled = self.machines.get(machine)
        start, end = self.span(since, until)
        if before_us is not None:
            end = min(end, from_us(before_us))
        scored = self.scoring.outcomes.page(enrolled, start, end, limit=limit + 1)
        return scored[:limit], len(scored) > limit

    def span(self, since: datetime | None, until: datetime | None) -> tuple[datetime, datetime]:
        """Return the span with defaults, or raise :class:`InputRejected`."""
        return chosen_span(since, until, now=self.scoring.clock.now(), usual=DEFAULT_SPAN, longest=MAX_SPAN)

    def _sums(
        self, machine: Machine, since: datetime, until: datetime, query: ScoreboardQuery
    ) -> Iterator[tuple[ScoreKey | None, ScoreSums]]:
        """Yield the sums of a machine for the total (key None) and for each row."""
        tables = self.scoring.score_tables(machine, since, until, query.horizon, status=query.status)
        if not tables:
            return
        for table in tables if query.by is Grouping.VERSION else [concat(tables)]:
            counts = count(table)
            yield None, counts.total
            if query.by is Grouping.MACHINE:
                yield ScoreKey(machine=machine.id), counts.total
            elif query.by is Grouping.VERSION:
                yield ScoreKey(version=int(table.version[0])), counts.total
            elif query.by is Grouping.DAY:
                for start_us, day in by_day(table):
                    yield ScoreKey(day=from_us(start_us).date()), count(day).total
            else:
                owner = machine.id if query.by is Grouping.MACHINE_AND_CODE else None
                for column, code in enumerate(counts.codes):
                    yield ScoreKey(machine=owner, code=int(code)), counts.for_code(column)


def _sort_key(row: tuple[ScoreKey, ScoreSums]) -> tuple[MachineId, int, int, date]:
    key = row[0]
    return (key.machine or MachineId("", ""), key.code or 0, key.version or 0, key.day or date.min)
