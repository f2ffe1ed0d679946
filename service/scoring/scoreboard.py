"""Outcomes to figures: how good the forecasts really served were, and one by one whether they came true."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from service.machines.models import Machine, MachineReader, chosen_machines, chosen_span
from service.scoring.outcome import ScoredForecast
from service.scoring.scores import ScoreSummary, ScoreSums, by_day, concat, count, summarize
from service.scoring.store import OutcomeStore
from wire.clock import PlantClock
from wire.enums import Grouping
from wire.identity import MachineId
from wire.timestamps import from_us

DEFAULT_SPAN = timedelta(days=30)
MAX_SPAN = timedelta(days=400)


@dataclass(frozen=True)
class ScoreboardQuery:
    """Which forecasts a scoreboard is about; all machines and the last 30 days unless told otherwise."""

    by: Grouping = Grouping.MACHINE
    site: str | None = None
    machine: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    status: str | None = None


@dataclass(frozen=True)
class ScoreKey:
    """What a line of the scoreboard is about; None is all of them."""

    machine: MachineId | None = None
    code: int | None = None
    version: int | None = None
    day: date | None = None


@dataclass(frozen=True)
class ScoreboardResult:
    """The figures of a span, all together and in lines; ``waiting`` are closed but not known yet."""

    since: datetime
    until: datetime
    waiting: int
    total: ScoreSummary | None
    lines: list[tuple[ScoreKey, ScoreSummary]]


@dataclass(frozen=True)
class Scoreboard:
    """Reads outcomes; a machine at a time, so that a long span of a large fleet needs little memory."""

    machines: MachineReader
    outcomes: OutcomeStore
    clock: PlantClock
    grace: timedelta

    def compute(self, query: ScoreboardQuery) -> ScoreboardResult:
        """Return the figures that a query asks for."""
        since, until = self.span(query.since, query.until)
        machines = chosen_machines(self.machines, query.site, query.machine)
        tallies: dict[ScoreKey, ScoreSums] = {}
        total: ScoreSums | None = None
        for machine in machines:
            for key, tally in self._tallies(machine, since, until, query):
                if key is None:
                    total = tally if total is None else total + tally
                else:
                    tallies[key] = tallies[key] + tally if key in tallies else tally
        closed = self.clock.now() - self.grace
        return ScoreboardResult(
            since,
            until,
            self.outcomes.pending(machines, since, until, closed=closed),
            None if total is None else summarize(total),
            [(key, summarize(tally)) for key, tally in sorted(tallies.items(), key=_order)],
        )

    def past(
        self,
        machine: MachineId,
        since: datetime | None,
        until: datetime | None,
        *,
        limit: int,
        before_us: int | None = None,
    ) -> tuple[list[ScoredForecast], bool]:
        """Return a machine's scored forecasts, newest first, and whether there are more than ``limit``."""
        known = self.machines.get(machine)
        start, end = self.span(since, until)
        if before_us is not None:
            end = min(end, from_us(before_us))
        found = self.outcomes.page(known, start, end, limit=limit + 1)
        return found[:limit], len(found) > limit

    def span(self, since: datetime | None, until: datetime | None) -> tuple[datetime, datetime]:
        """Return the span asked for, or say in a sentence what is wrong with it."""
        return chosen_span(since, until, now=self.clock.now(), usual=DEFAULT_SPAN, longest=MAX_SPAN)

    def _tallies(
        self, machine: Machine, since: datetime, until: datetime, query: ScoreboardQuery
    ) -> Iterator[tuple[ScoreKey | None, ScoreSums]]:
        """Yield a machine's share of the total (key None) and of each line."""
        sheets = self.outcomes.score_tables(machine, since, until, status=query.status)
        if not sheets:
            return
        for sheet in sheets if query.by is Grouping.VERSION else [concat(sheets)]:
            counts = count(sheet)
            yield None, counts.whole
            if query.by is Grouping.MACHINE:
                yield ScoreKey(machine=machine.id), counts.whole
            elif query.by is Grouping.VERSION:
                yield ScoreKey(version=int(sheet.version[0])), counts.whole
            elif query.by is Grouping.DAY:
                for start_us, day in by_day(sheet):
                    yield ScoreKey(day=from_us(start_us).date()), count(day).whole
            else:
                owner = machine.id if query.by is Grouping.MACHINE_AND_CODE else None
                for column, code in enumerate(counts.codes):
                    yield ScoreKey(machine=owner, code=int(code)), counts.of(column)


def _order(line: tuple[ScoreKey, ScoreSums]) -> tuple[MachineId, int, int, date]:
    key = line[0]
    return (key.machine or MachineId("", ""), key.code or 0, key.version or 0, key.day or date.min)
