"""A machine's evidence to its forecast: the same arithmetic for the grid, for REST and for the past."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np

from forecasting.forecaster import Forecaster
from forecasting.network import Matrix
from forecasting.series import AlarmSeries
from forecasting.window import WindowSpec, coverage, evidence
from service.core.catalogue import CatalogueEntry, unknown_code
from service.core.machine import Agent, Machine
from service.core.version import StoredForecast
from service.errors import InputRejected
from service.flows.base_rates import BaseRates
from service.flows.champion import Champion, Serving
from service.flows.ports import Catalogue, EventLog, Machines
from wire.clock import PlantClock
from wire.forecasts import Forecast, ForecastStatus, LikelyAlarm
from wire.identity import MachineId

ENOUGH_COVERAGE = 0.5


class Made(NamedTuple):
    """A forecast as people read it and as the store keeps it."""

    forecast: Forecast
    stored: StoredForecast


@dataclass(frozen=True)
class ForecastDesk:
    """Makes forecasts; holds nothing but its sources."""

    machines: Machines
    log: EventLog
    catalogue: Catalogue
    champion: Champion
    base_rates: BaseRates
    clock: PlantClock
    stale_after: timedelta

    def now(self, machines: Sequence[Machine], at: datetime) -> list[Made]:
        """Forecast machines as of ``at``, this moment or the grid's last, with the champion, all in one pass."""
        serving = self.champion.current()
        agents = self.machines.agents()
        return self._make(machines, at, serving, [agents.get(machine.id) for machine in machines])

    def past(self, machine: MachineId, at: datetime) -> Forecast:
        """Forecast as of a past moment, with the version that served then, or with the champion in hindsight."""
        if at > self.clock.now():
            raise InputRejected(f"{at.isoformat()} has not come yet; ask for a moment up to now.")
        known = self.machines.get(machine)
        serving = self.champion.at(at)
        hindsight = serving is None
        made = self._make([known], at, serving or self.champion.current(), [None], hindsight=hindsight)
        return made[0].forecast

    def _make(
        self,
        machines: Sequence[Machine],
        at: datetime,
        serving: Serving,
        agents: Sequence[Agent | None],
        *,
        hindsight: bool = False,
    ) -> list[Made]:
        if not machines:
            return []
        model, spec = serving.forecaster, serving.forecaster.spec
        seen = [evidence(self.log.series(machine, at - spec.lookback, at), at, spec) for machine in machines]
        probabilities = model.probabilities(seen)
        entries = self.catalogue.entries()
        return [
            self._one(machine, at, serving, window, row, agent, entries, hindsight=hindsight)
            for machine, window, row, agent in zip(machines, seen, probabilities, agents, strict=True)
        ]

    def _one(
        self,
        machine: Machine,
        at: datetime,
        serving: Serving,
        seen: AlarmSeries,
        probabilities: Matrix,
        agent: Agent | None,
        entries: dict[int, CatalogueEntry],
        *,
        hindsight: bool,
    ) -> Made:
        spec = serving.forecaster.spec
        covered = self._coverage(machine, at, spec, agent)
        status = self._status(at, covered, agent)
        forecast = Forecast(
            site=machine.id.site,
            machine=machine.id.machine,
            as_of=at,
            window_start=at - spec.lookback,
            window_end=at,
            horizon_end=at + spec.horizon,
            events_seen=len(seen),
            coverage=round(covered, 4),
            model_version=serving.version.name,
            hindsight=hindsight,
            status=status,
            alarms=likely_alarms(
                serving.forecaster,
                probabilities,
                self.base_rates.of(machine, at, serving.forecaster),
                entries,
            ),
        )
        stored = StoredForecast(
            machine.row, at, serving.version.number, status.value, len(seen), covered, probabilities
        )
        return Made(forecast, stored)

    def _coverage(self, machine: Machine, at: datetime, spec: WindowSpec, agent: Agent | None) -> float:
        first = self.log.first_at(machine)
        if first is None:
            return 0.0
        # Asked about the past, the agent's present state says nothing; what is stored is what was heard.
        last = max(agent.heard_at, first) if agent else at
        deaf = [(gap.first_at, gap.last_at) for gap in self.log.gaps(machine, at - spec.lookback, at)]
        silent_but_well = agent is not None and agent.online and at - agent.heard_at <= self.stale_after
        return coverage(at, spec, heard=(first, at if silent_but_well else last), deaf=deaf)

    def _status(self, at: datetime, covered: float, agent: Agent | None) -> ForecastStatus:
        if covered < ENOUGH_COVERAGE:
            return ForecastStatus.WARMING_UP
        if agent is not None and (not agent.online or at - agent.heard_at > self.stale_after):
            return ForecastStatus.STALE
        return ForecastStatus.OK


def likely_alarms(
    model: Forecaster, probabilities: Matrix, base_rates: Matrix | None, entries: dict[int, CatalogueEntry]
) -> list[LikelyAlarm]:
    """Put words to a row of probabilities, most likely first."""
    order = np.argsort(-probabilities, kind="stable")
    alarms = []
    for column in order:
        code = model.vocabulary.targets[column]
        entry = entries.get(code) or unknown_code(code)
        probability = round(float(probabilities[column]), 4)
        threshold = round(float(model.thresholds[column]), 4)
        alarms.append(
            LikelyAlarm(
                code=code,
                text=entry.text,
                severity=entry.severity,
                probability=probability,
                base_rate=None if base_rates is None else round(float(base_rates[column]), 4),
                threshold=threshold,
                expected=probability >= threshold,
            )
        )
    return alarms


def urgency(forecast: Forecast) -> tuple[float, float]:
    """Order forecasts: first by the likeliest alarm that passes its threshold, then by the likeliest at all."""
    expected = max((alarm.probability for alarm in forecast.alarms if alarm.expected), default=0.0)
    likeliest = max((alarm.probability for alarm in forecast.alarms), default=0.0)
    return (-expected, -likeliest)
