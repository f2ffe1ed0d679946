"""A machine's evidence to its forecast: the same arithmetic for the grid, for REST and for the past."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from forecasting.forecaster import ObservedSeries
from forecasting.network import Matrix
from forecasting.window import WindowSpec, coverage, input_window
from service.errors import InputRejected
from service.forecasts.base_rates import BaseRates
from service.forecasts.champion import ChampionCache, LoadedModel
from service.forecasts.target_labels import TargetLabels
from service.forecasts.version import StoredForecast
from service.http.histogram import Histogram
from service.machines.catalogue_store import CatalogueStore
from service.machines.event_store import EventStore
from service.machines.events import Evidence
from service.machines.models import Agent, Machine
from service.machines.store import MachineStore
from wire.clock import PlantClock
from wire.forecasts import Forecast, ForecastStatus
from wire.identity import MachineId
from wire.timestamps import EARLIEST

ENOUGH_COVERAGE = 0.5
_AT_ONCE, _FEW = 1000, 5  # machines
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class ObservedSpan(NamedTuple):
    """From when to when a machine was observed, if ever, and whether its agent is online and sends."""

    since: datetime | None
    until: datetime | None
    well: bool


class ForecastResult(NamedTuple):
    """A forecast as people read it and as the store keeps it."""

    forecast: Forecast
    stored: StoredForecast


class ServingAt(NamedTuple):
    """A machine, the version that spoke for it at some moment, and whether that is hindsight."""

    machine: Machine
    serving: LoadedModel
    hindsight: bool


@dataclass(frozen=True)
class ForecastService:
    """Makes forecasts; holds nothing but its sources, and counts how long a pass over present machines takes."""

    machines: MachineStore
    log: EventStore
    catalogue: CatalogueStore
    champion: ChampionCache
    base_rates: BaseRates
    clock: PlantClock
    stale_after: timedelta
    monotonic: Callable[[], float] = time.monotonic
    durations: Histogram = field(default_factory=lambda: Histogram(_SECONDS))

    def forecast_now(self, machines: Sequence[Machine], at: datetime) -> list[ForecastResult]:
        """Forecast machines as of ``at``, this moment or the grid's last, with the champion, all in one pass."""
        serving = self.champion.current()
        started = self.monotonic()
        # So many at a time, so that the largest fleet's evidence fits into memory.
        parts = (machines[first : first + _AT_ONCE] for first in range(0, len(machines), _AT_ONCE))
        made = [one for part in parts for one in self._present(part, at, serving)]
        if made:
            self.durations.add(self.monotonic() - started)
        return made

    def forecast_at(self, machine: MachineId, at: datetime) -> Forecast:
        """Forecast as of a past moment, with the version that served then, or with the champion in hindsight."""
        known, serving, hindsight = self.serving_at(machine, at)
        # How the agent is now says nothing about then; what is stored is what was observed.
        (found,) = self._evidence([known], at, serving)
        span = ObservedSpan(found.first_at, at, well=True)
        (made,) = self._make([known], at, serving, [found], [span], hindsight=hindsight)
        return made.forecast

    def serving_at(self, machine: MachineId, at: datetime) -> ServingAt:
        """Say who speaks for a machine as of a past moment, or refuse a moment that cannot be asked about."""
        if at > self.clock.now():
            raise InputRejected(f"{at.isoformat()} has not come yet; ask for a moment up to now.")
        known = self.machines.get(machine)
        known.require_active()
        then = self.champion.at(at)
        serving = then or self.champion.current()
        if at < EARLIEST + serving.forecaster.lookback:
            raise InputRejected(f"{at.isoformat()} is too long ago; ask for a moment after {EARLIEST.year}.")
        return ServingAt(known, serving, hindsight=then is None)

    def _present(self, machines: Sequence[Machine], at: datetime, serving: LoadedModel) -> list[ForecastResult]:
        agents = self._agents(machines)
        found = self._evidence(machines, at, serving)
        spans = [
            self._observed_span(one, at, agents.get(machine.id))
            for machine, one in zip(machines, found, strict=True)
        ]
        return self._make(machines, at, serving, found, spans)

    def _agents(self, machines: Sequence[Machine]) -> Mapping[MachineId, Agent]:
        if len(machines) > _FEW:
            return self.machines.agents()
        return {machine.id: agent for machine in machines if (agent := self.machines.agent(machine))}

    def _evidence(self, machines: Sequence[Machine], at: datetime, serving: LoadedModel) -> list[Evidence]:
        return self.log.evidence(machines, at - serving.forecaster.lookback, at)

    def _make(
        self,
        machines: Sequence[Machine],
        at: datetime,
        serving: LoadedModel,
        found: Sequence[Evidence],
        spans: Sequence[ObservedSpan],
        *,
        hindsight: bool = False,
    ) -> list[ForecastResult]:
        model = serving.forecaster
        records = [ObservedSeries(one.series, one.first_at or at) for one in found]
        rows, by_horizon = model.forecast(records, at)
        horizons = [None] * len(rows) if by_horizon is None else list(by_horizon)
        wording = TargetLabels.build(model, self.catalogue.entries())
        return [
            self._build(machine, at, serving, one, (row, near_to_far), its, wording, hindsight=hindsight)
            for machine, one, row, near_to_far, its in zip(machines, found, rows, horizons, spans, strict=True)
        ]

    def _build(
        self,
        machine: Machine,
        at: datetime,
        serving: LoadedModel,
        found: Evidence,
        forecasts: tuple[Matrix, Matrix | None],
        observed: ObservedSpan,
        wording: TargetLabels,
        *,
        hindsight: bool,
    ) -> ForecastResult:
        spec = serving.forecaster.spec
        covered, status = _coverage_and_status(found, at, spec, observed)
        seen = len(input_window(found.series, at, spec))
        probabilities, by_horizon = forecasts
        usual = self.base_rates.get(machine, at, serving.forecaster)
        forecast = Forecast(
            site=machine.id.site,
            machine=machine.id.machine,
            as_of=at,
            window_start=at - spec.lookback,
            window_end=at,
            horizon_end=at + spec.horizon,
            events_seen=seen,
            coverage=round(covered, 4),
            model_version=serving.version.name,
            learned=serving.version.has_learned(machine.id),
            hindsight=hindsight,
            status=status,
            alarms=wording.alarms(probabilities, usual, by_horizon),
        )
        others = None if by_horizon is None else by_horizon.T[[0, 2]]
        version = serving.version.id
        stored = StoredForecast(machine.row_id, at, version, status.value, seen, covered, probabilities, others)
        return ForecastResult(forecast, stored)

    def _observed_span(self, found: Evidence, at: datetime, agent: Agent | None) -> ObservedSpan:
        """Return from when to when the machine was observed, and whether its agent is well now."""
        if agent is None:
            return ObservedSpan(found.first_at, found.last_at, well=False)
        well = agent.online and at - agent.last_seen_at <= self.stale_after
        return ObservedSpan(found.first_at, at if well else agent.last_seen_at, well=well)


def _coverage_and_status(
    found: Evidence, at: datetime, spec: WindowSpec, observed: ObservedSpan
) -> tuple[float, ForecastStatus]:
    """Return the coverage of the evidence window and what it makes of the forecast."""
    if observed.since is None or observed.until is None:
        return 0.0, ForecastStatus.WARMING_UP
    missing = [(gap.first_at, gap.last_at) for gap in found.gaps]
    covered = coverage(
        at, spec, observed=(observed.since, max(observed.until, observed.since)), unobserved=missing
    )
    if not observed.well:
        return covered, ForecastStatus.STALE
    return covered, ForecastStatus.OK if covered >= ENOUGH_COVERAGE else ForecastStatus.WARMING_UP
