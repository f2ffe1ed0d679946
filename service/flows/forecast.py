"""A machine's evidence to its forecast: the same arithmetic for the grid, for REST and for the past."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np

from forecasting.forecaster import Forecaster, Record
from forecasting.network import Matrix
from forecasting.window import WindowSpec, coverage, evidence
from service.core.catalogue import CatalogueEntry, unknown_code
from service.core.histogram import Histogram
from service.core.machine import Agent, Machine
from service.core.version import StoredForecast
from service.errors import InputRejected
from service.flows.base_rates import BaseRates
from service.flows.champion import Champion, Serving
from service.flows.ports import Catalogue, EventLog, Machines
from wire.clock import PlantClock
from wire.forecasts import Forecast, ForecastStatus, LikelyAlarm
from wire.identity import MachineId
from wire.moment import EARLIEST

ENOUGH_COVERAGE = 0.5
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Heard(NamedTuple):
    """Since when and up to when a machine was heard, if ever, and whether its agent is online and speaking."""

    since: datetime | None
    until: datetime | None
    well: bool


class Made(NamedTuple):
    """A forecast as people read it and as the store keeps it."""

    forecast: Forecast
    stored: StoredForecast


class Then(NamedTuple):
    """A machine, the version that spoke for it at some moment, and whether that is hindsight."""

    machine: Machine
    serving: Serving
    hindsight: bool


@dataclass(frozen=True)
class ForecastDesk:
    """Makes forecasts; holds nothing but its sources, and counts how long a pass over present machines takes."""

    machines: Machines
    log: EventLog
    catalogue: Catalogue
    champion: Champion
    base_rates: BaseRates
    clock: PlantClock
    stale_after: timedelta
    monotonic: Callable[[], float] = time.monotonic
    durations: Histogram = field(default_factory=lambda: Histogram(_SECONDS))

    def now(self, machines: Sequence[Machine], at: datetime) -> list[Made]:
        """Forecast machines as of ``at``, this moment or the grid's last, with the champion, all in one pass."""
        serving = self.champion.current()
        started = self.monotonic()
        agents = self.machines.agents()
        heard = [self._heard(machine, at, agents.get(machine.id)) for machine in machines]
        made = self._make(machines, at, serving, heard)
        if made:
            self.durations.add(self.monotonic() - started)
        return made

    def past(self, machine: MachineId, at: datetime) -> Forecast:
        """Forecast as of a past moment, with the version that served then, or with the champion in hindsight."""
        known, serving, hindsight = self.then(machine, at)
        # How the agent is now says nothing about then; what is stored is what was heard.
        heard = Heard(self.log.first_at(known), at, well=True)
        made = self._make([known], at, serving, [heard], hindsight=hindsight)
        return made[0].forecast

    def then(self, machine: MachineId, at: datetime) -> Then:
        """Say who speaks for a machine as of a past moment, or refuse a moment that cannot be asked about."""
        if at > self.clock.now():
            raise InputRejected(f"{at.isoformat()} has not come yet; ask for a moment up to now.")
        known = self.machines.get(machine)
        known.insist_on_presence()
        then = self.champion.at(at)
        serving = then or self.champion.current()
        if at < EARLIEST + serving.forecaster.reach:
            raise InputRejected(f"{at.isoformat()} is too long ago; ask for a moment after {EARLIEST.year}.")
        return Then(known, serving, hindsight=then is None)

    def _make(
        self,
        machines: Sequence[Machine],
        at: datetime,
        serving: Serving,
        heard: Sequence[Heard],
        *,
        hindsight: bool = False,
    ) -> list[Made]:
        if not machines:
            return []
        model = serving.forecaster
        records = [
            Record(self.log.series(machine, at - model.reach, at), one.since or at)
            for machine, one in zip(machines, heard, strict=True)
        ]
        seen = [len(evidence(record.series, at, model.spec)) for record in records]
        probabilities = model.probabilities(records, at)
        entries = self.catalogue.entries()
        return [
            self._one(machine, at, serving, count, row, one, entries, hindsight=hindsight)
            for machine, count, row, one in zip(machines, seen, probabilities, heard, strict=True)
        ]

    def _one(
        self,
        machine: Machine,
        at: datetime,
        serving: Serving,
        seen: int,
        probabilities: Matrix,
        heard: Heard,
        entries: dict[int, CatalogueEntry],
        *,
        hindsight: bool,
    ) -> Made:
        spec = serving.forecaster.spec
        covered, status = self._trust(machine, at, spec, heard)
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
            learned=str(machine.id) in serving.version.learned,
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
            machine.row, at, serving.version.number, status.value, seen, covered, probabilities
        )
        return Made(forecast, stored)

    def _heard(self, machine: Machine, at: datetime, agent: Agent | None) -> Heard:
        """Say since when and up to when the machine was heard, and whether its agent is well now."""
        since = self.log.first_at(machine)
        if agent is None:
            return Heard(since, self.log.last_at(machine), well=False)
        well = agent.online and at - agent.heard_at <= self.stale_after
        return Heard(since, at if well else agent.heard_at, well=well)

    def _trust(
        self, machine: Machine, at: datetime, spec: WindowSpec, heard: Heard
    ) -> tuple[float, ForecastStatus]:
        """Return the coverage of the evidence window and what it makes of the forecast."""
        if heard.since is None or heard.until is None:
            return 0.0, ForecastStatus.WARMING_UP
        deaf = [(gap.first_at, gap.last_at) for gap in self.log.gaps(machine, at - spec.lookback, at)]
        covered = coverage(at, spec, heard=(heard.since, max(heard.until, heard.since)), deaf=deaf)
        if not heard.well:
            return covered, ForecastStatus.STALE
        return covered, ForecastStatus.OK if covered >= ENOUGH_COVERAGE else ForecastStatus.WARMING_UP


def likely_alarms(
    model: Forecaster, probabilities: Matrix, base_rates: Matrix | None, entries: dict[int, CatalogueEntry]
) -> list[LikelyAlarm]:
    """Put words to a row of probabilities, most likely first."""
    order = np.argsort(-probabilities, kind="stable")
    alarms = []
    for column in order:
        code = model.vocabulary.targets[column]
        entry = entries.get(code) or unknown_code(code)
        if not wanted(code, entries):
            continue
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


def wanted(code: int, entries: dict[int, CatalogueEntry]) -> bool:
    """Say whether a target is still to be forecast; one that is not keeps its column in the network."""
    return code not in entries or entries[code].target


def urgency(forecast: Forecast) -> tuple[float, float]:
    """Order forecasts: first by the likeliest alarm that passes its threshold, then by the likeliest at all."""
    expected = max((alarm.probability for alarm in forecast.alarms if alarm.expected), default=0.0)
    likeliest = max((alarm.probability for alarm in forecast.alarms), default=0.0)
    return (-expected, -likeliest)
