"""Stored forecasts to outcomes, once their horizons have closed and the machine was heard since."""

import logging
from collections.abc import Iterator
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
from service.scoring.outcome import Outcome, PendingForecast, ScoringSpec, score
from service.scoring.store import OutcomeStore
from wire.clock import PlantClock
from wire.timestamps import from_us, to_us

log = logging.getLogger(__name__)

_MICROSECOND = timedelta(microseconds=1)


@dataclass
class ScoringService:
    """Scores what is due, a machine at a time; what is scored already is scored again if something came late.

    A horizon is due when it has been closed for ``grace`` by the plant clock *and* the machine was heard after
    its end: what an offline agent still holds is unknown, so its forecasts wait until it is back.
    """

    machines: MachineStore
    log: EventStore
    versions: VersionStore
    outcomes: OutcomeStore
    clock: PlantClock
    grace: timedelta
    at_once: int = 200  # forecasts of one machine that are scored together
    _measures: dict[int, ScoringSpec] = field(default_factory=dict)
    _unreadable: set[int] = field(default_factory=set)

    def all_due(self) -> Iterator[int]:
        """Score everything that is due, and yield after each bounded piece of work how many were scored.

        Machines take turns, so that one with a long backlog does not keep the others waiting.
        """
        more = True
        while more:
            more = False
            self._save_specs()
            agents = self.machines.agents()
            for machine in self.machines.all() if self._measures else ():
                done = self.score(machine, agents.get(machine.id))
                more |= done == self.at_once
                if done:
                    yield done

    def score(self, machine: Machine, agent: Agent | None) -> int:
        """Score up to ``at_once`` forecasts of a machine; return how many were due."""
        now, heard = self.clock.now(), self._observed_until(machine, agent)
        if heard is None:
            return 0
        longest = max(measure.horizon_us for measure in self._measures.values())
        closed = min(now - self.grace, heard)
        due = self.outcomes.due(machine, closed=closed, longest_us=longest, limit=self.at_once)
        if not due:
            return 0
        # Said before the events are read: whatever is committed from here on counts itself as late.
        opened = self.outcomes.begin(machine, max(self._end(one) for one in due))
        self.outcomes.add(machine, self._score_all(machine, due), opened=opened, at=now)
        return len(due)

    def _score_all(self, machine: Machine, due: list[PendingForecast]) -> list[Outcome]:
        earliest = from_us(min(one.as_of_us for one in due))
        back = timedelta(microseconds=max(self._measures[one.version].lookback_us for one in due))
        end = from_us(max(self._end(one) for one in due))
        first = self.log.first_at(machine)
        series = self.log.series(machine, earliest - max(LOOKBACK, back), end)
        deaf = [(to_us(gap.first_at), to_us(gap.last_at)) for gap in self.log.gaps(machine, earliest, end)]
        by_version = sorted(due, key=lambda one: one.version)
        return [
            outcome
            for version, group in groupby(by_version, key=lambda one: one.version)
            for outcome in score(
                group,
                self._measures[version],
                series,
                first_us=None if first is None else to_us(first),
                deaf=deaf,
            )
        ]

    def _end(self, one: PendingForecast) -> int:
        return one.as_of_us + self._measures[one.version].horizon_us

    def _observed_until(self, machine: Machine, agent: Agent | None) -> datetime | None:
        """Return up to when nothing is missing, if ever: what waits in a spool is later than what has come."""
        last = self.log.last_at(machine)
        if agent is None or agent.spooled:
            return last
        return agent.last_seen_at if last is None else max(agent.last_seen_at, last)

    def _save_specs(self) -> None:
        """Take from versions what scoring needs while their weights are there."""
        missing = set(self.outcomes.versions_without_spec())
        for version in self.versions.all() if missing else ():
            if version.id in missing:
                try:
                    self.outcomes.save_spec(_measure(version.id, self.versions.load(version)))
                except Unavailable as error:  # the others can still be scored
                    self._warn_once(version, str(error))
        if missing or not self._measures:
            self._measures = self.outcomes.specs()

    def _warn_once(self, version: Version, why: str) -> None:
        if version.id not in self._unreadable:
            self._unreadable.add(version.id)
            log.warning("the forecasts of %s cannot be scored: %s", version.name, why)


def _measure(version: int, model: Forecaster) -> ScoringSpec:
    return ScoringSpec(
        version,
        model.spec.lookback // _MICROSECOND,
        model.spec.horizon // _MICROSECOND,
        np.array(model.vocabulary.targets, dtype=np.int64),
        model.thresholds,
    )
