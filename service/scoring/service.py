"""Score stored forecasts after their horizon has ended."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby

import numpy as np

from forecasting.forecaster import Forecaster
from service.errors import Unavailable
from service.forecasts.base_rates import LOOKBACK
from service.forecasts.version import Version
from service.forecasts.version_store import VersionStore
from service.machines.event_store import EventStore
from service.machines.models import Agent, Machine
from service.machines.store import MachineStore
from service.scoring.models import History, Outcome, PendingForecast, ScoringSpec, score
from service.scoring.scores import ScoreTable
from service.scoring.store import OutcomeStore
from wire.clock import PlantClock
from wire.enums import Horizon
from wire.timestamps import from_us, to_us

log = logging.getLogger(__name__)

_MICROSECOND = timedelta(microseconds=1)


@dataclass
class ScoringService:
    """Scores forecasts that are due, one machine at a time; late events cause a new scoring.

    A forecast is due when its horizon ended ``grace`` ago by the plant clock *and* the machine was seen after its
    end: events that an offline agent still buffers are unknown.
    """

    machines: MachineStore
    events: EventStore
    versions: VersionStore
    outcomes: OutcomeStore
    clock: PlantClock
    grace: timedelta
    batch_size: int = 200  # forecasts of one machine
    _specs: dict[int, ScoringSpec] = field(default_factory=dict)
    _unreadable: set[int] = field(default_factory=set)

    def score_all_due(self) -> Iterator[int]:
        """Score everything that is due; yield after each batch how many were scored.

        Batches alternate between machines, so that one with a long backlog does not delay the others.
        """
        more = True
        while more:
            more = False
            self._save_specs()
            agents = self.machines.agents()
            for machine in self.machines.all() if self._specs else ():
                done = self.score(machine, agents.get(machine.id))
                more |= done == self.batch_size
                if done:
                    yield done

    def score(self, machine: Machine, agent: Agent | None) -> int:
        """Score up to ``batch_size`` forecasts of a machine; return how many were due."""
        now, closed = self.clock.now(), self._closed(machine, agent)
        if closed is None:
            return 0
        longest = max(spec.horizon_us for spec in self._specs.values())
        due = self.outcomes.due(machine, closed=closed, longest_us=longest, limit=self.batch_size)
        if not due:
            return 0
        # Before the events are read: an event committed from here on invalidates the score.
        opened = self.outcomes.begin(machine, max(self._end(forecast) for forecast in due))
        self.outcomes.add(machine, self._score_all(machine, due), opened=opened, at=now)
        return len(due)

    def score_tables(
        self, machine: Machine, start: datetime, end: datetime, horizon: Horizon, *, status: str | None = None
    ) -> list[ScoreTable]:
        """Return the outcomes of a machine's forecasts made in ``[start, end)``, one table per version.

        Those of the main horizon are stored. The others are computed from the events: nothing more is stored.
        """
        if horizon is Horizon.MAIN:
            return self.outcomes.score_tables(machine, start, end, status=status)
        closed = self._closed(machine, self.machines.agent(machine))
        if closed is None:
            return []
        issued = self.outcomes.issued(machine, start, end, horizon, closed=closed, status=status)
        if not issued:
            return []
        specs = [one.spec for one in issued]
        first, last = min(one.at[0] for one in issued), max(one.at[-1] + one.spec.horizon_us for one in issued)
        history = self._history(machine, int(first), int(last), max(spec.lookback_us for spec in specs))
        return [one.score_table(history) for one in issued]

    def ended(
        self,
        machines: Sequence[Machine],
        start: datetime,
        end: datetime,
        horizon: Horizon,
        *,
        status: str | None = None,
    ) -> int:
        """Return how many forecasts made in ``[start, end)`` have a horizon that has ended."""
        closed = self.clock.now() - self.grace
        return self.outcomes.ended(machines, start, end, horizon, closed=closed, status=status)

    def _score_all(self, machine: Machine, due: list[PendingForecast]) -> list[Outcome]:
        earliest, end = min(forecast.as_of_us for forecast in due), max(self._end(forecast) for forecast in due)
        lookback_us = max(self._specs[forecast.version].lookback_us for forecast in due)
        history = self._history(machine, earliest, end, lookback_us)
        by_version = sorted(due, key=lambda forecast: forecast.version)
        return [
            outcome
            for version, group in groupby(by_version, key=lambda forecast: forecast.version)
            for outcome in score(group, self._specs[version], history)
        ]

    def _history(self, machine: Machine, earliest_us: int, end_us: int, lookback_us: int) -> History:
        earliest, end = from_us(earliest_us), from_us(end_us)
        first = self.events.first_at(machine)
        series = self.events.series(machine, earliest - max(LOOKBACK, timedelta(microseconds=lookback_us)), end)
        lost = [(to_us(gap.first_at), to_us(gap.last_at)) for gap in self.events.gaps(machine, earliest, end)]
        return History(series, None if first is None else to_us(first), lost)

    def _end(self, forecast: PendingForecast) -> int:
        return forecast.as_of_us + self._specs[forecast.version].horizon_us

    def _closed(self, machine: Machine, agent: Agent | None) -> datetime | None:
        """Return up to when a horizon must have ended to be scored."""
        observed_until = self._observed_until(machine, agent)
        return None if observed_until is None else min(self.clock.now() - self.grace, observed_until)

    def _observed_until(self, machine: Machine, agent: Agent | None) -> datetime | None:
        """Return the time up to which no event is missing: events in a spool are later than stored ones."""
        last = self.events.last_at(machine)
        if agent is None or agent.spooled:
            return last
        return agent.last_seen_at if last is None else max(agent.last_seen_at, last)

    def _save_specs(self) -> None:
        """Store the scoring parameters of versions while their weights exist."""
        missing = set(self.outcomes.versions_without_spec())
        for version in self.versions.all() if missing else ():
            if version.id in missing:
                try:
                    self.outcomes.save_spec(_scoring_spec(version.id, self.versions.load(version)))
                except Unavailable as error:  # other versions can still be scored
                    self._warn_once(version, str(error))
        if missing or not self._specs:
            self._specs = self.outcomes.specs()

    def _warn_once(self, version: Version, reason: str) -> None:
        if version.id not in self._unreadable:
            self._unreadable.add(version.id)
            log.warning("forecasts of %s cannot be scored: %s", version.name, reason)


def _scoring_spec(version: int, model: Forecaster) -> ScoringSpec:
    return ScoringSpec(
        version,
        model.spec.lookback // _MICROSECOND,
        model.spec.horizon // _MICROSECOND,
        np.array(model.vocabulary.targets, dtype=np.int64),
        model.thresholds,
    )
