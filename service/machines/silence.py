"""Silence detection: machines whose alarms have stopped against their activity profile."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from forecasting.series import AlarmSeries
from service.machines.event_store import EventStore
from service.machines.models import Agent, Machine
from service.machines.store import MachineStore
from service.messaging.bus import ChangeBus, ChangesMissed, EventsStored, HistoryLoaded
from wire.identity import MachineId
from wire.timestamps import to_us

LOOKBACK = timedelta(days=56)
_HOUR = 3_600_000_000
_WEEK = 168
_LEAST_ALARMS, _LEAST_DAYS = 30, 3
_BEYOND = 1.5  # times the longest pause there was
_LEAST = 2.0  # working hours that are never a silence


@dataclass(frozen=True)
class ActivityProfile:
    """How likely a machine speaks in each hour of the week, and its longest pause in working hours."""

    shares: NDArray[np.float64]
    longest_pause: float

    @property
    def silence_threshold_h(self) -> float:
        """The working hours after which a pause is a silence."""
        return max(_LEAST, _BEYOND * self.longest_pause)

    def working_hours(self, start: datetime, end: datetime) -> float:
        """Return how many working hours lie between two moments."""
        worked = _active_time(self.shares, np.array([to_us(start), to_us(end)]))
        return float(worked[1] - worked[0])


def fit_profile(series: AlarmSeries, now: datetime) -> ActivityProfile | None:
    """Return a machine's rhythm from its alarms up to ``now``, or None while too little is known."""
    if len(series) < _LEAST_ALARMS:
        return None
    first, last = int(series.times[0]), int(series.times[-1])
    if last - first < _LEAST_DAYS * 24 * _HOUR:
        return None
    hours = np.arange(first // _HOUR, min(last, to_us(now)) // _HOUR + 1)
    spoke = np.isin(hours, series.times // _HOUR)
    slots = hours % _WEEK
    seen = np.bincount(slots, minlength=_WEEK)
    held = np.bincount(slots[spoke], minlength=_WEEK)
    # Within the first weeks an hour of the week has been seen once or twice; the mean steadies what it says.
    mean = spoke.mean()
    shares = (held + mean) / (seen + 1)
    worked = _active_time(shares, series.times)
    return ActivityProfile(shares, float(np.diff(worked).max(initial=0.0)))


def _active_time(shares: NDArray[np.float64], times: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the working hours that have passed at each moment since some beginning."""
    hours = times // _HOUR
    before = np.concatenate([[0.0], np.cumsum(shares)])
    weeks, slots = np.divmod(hours, _WEEK)
    within = before[slots] + shares[slots] * ((times - hours * _HOUR) / _HOUR)
    return np.asarray(weeks * before[-1] + within, dtype=np.float64)


_RENEW_AFTER = timedelta(days=1)
_AT_ONCE = 1000  # machines


@dataclass(frozen=True)
class SilentMachine:
    """A machine, since when it is silent, and how many hours it should have spoken in."""

    machine: MachineId
    since: datetime
    overdue_hours: float
    usual_hours: float


@dataclass
class SilenceDetector:
    """Judges every machine once a minute, and a silent one again as soon as something arrives for it.

    The activity profile of a machine is fitted again once a plant day.
    """

    machines: MachineStore
    log: EventStore
    _profiles: dict[int, tuple[datetime, ActivityProfile | None]] = field(default_factory=dict)
    _arrivals: Counter[MachineId] = field(default_factory=Counter)
    _judged: dict[MachineId, int] = field(default_factory=dict)  # the number of arrivals before it was judged
    silent: list[SilentMachine] = field(default_factory=list)

    def subscribe_to(self, bus: ChangeBus) -> None:
        """Judge silent machines again after something has arrived for them."""
        bus.subscribe(EventsStored, lambda event: self._arrivals.update(event.machines))
        bus.subscribe(HistoryLoaded, lambda event: self._arrivals.update([event.machine]))
        bus.subscribe(ChangesMissed, lambda _event: self._arrivals.update(one.machine for one in self.silent))

    def refresh(self, now: datetime) -> list[SilentMachine]:
        """Return the machines that are silent now, those that have missed most first."""
        self.silent = self._silent(self.machines.all(), now)
        return self.silent

    def current(self, now: datetime) -> list[SilentMachine]:
        """Return the silent machines, and judge again those for which something has arrived since."""
        found = self.silent
        changed = {one.machine for one in found if self._arrivals[one.machine] != self._judged.get(one.machine, 0)}
        if not changed:
            return found
        again = self._silent([machine for machine in self.machines.all() if machine.id in changed], now)
        current = _strangest_first([*(one for one in found if one.machine not in changed), *again])
        if self.silent is found:  # otherwise every machine was judged meanwhile
            self.silent = current
        return current

    def _silent(self, machines: list[Machine], now: datetime) -> list[SilentMachine]:
        agents = self.machines.agents()
        parts = (machines[first : first + _AT_ONCE] for first in range(0, len(machines), _AT_ONCE))
        return _strangest_first([one for part in parts for one in self._judge_all(part, agents, now)])

    def _judge_all(
        self, machines: list[Machine], agents: dict[MachineId, Agent], now: datetime
    ) -> Iterator[SilentMachine]:
        """Read the last alarms of many machines at once; their windows are empty, and so cost nothing."""
        arrivals = {machine.id: self._arrivals[machine.id] for machine in machines}
        for machine, known in zip(machines, self.log.evidence(machines, now, now), strict=True):
            silence = self._judge(machine, agents.get(machine.id), known.last_at, now)
            if silence is not None:
                self._judged[machine.id] = arrivals[machine.id]
                yield silence

    def _judge(
        self, machine: Machine, agent: Agent | None, last: datetime | None, now: datetime
    ) -> SilentMachine | None:
        """Judge only the time in which the agent could have delivered an alarm.

        Without an agent, or while alarms wait at the machine, the last stored alarm is not the last raised one.
        """
        if agent is None or not agent.online or agent.spooled:
            return None
        listened = min(now, agent.last_seen_at)
        if last is None or last >= listened:
            return None
        known = self._profile(machine, now)
        if known is None:
            return None
        missed = known.working_hours(last, listened)
        return (
            SilentMachine(machine.id, last, missed, known.silence_threshold_h)
            if missed > known.silence_threshold_h
            else None
        )

    def _profile(self, machine: Machine, now: datetime) -> ActivityProfile | None:
        kept = self._profiles.get(machine.row_id)
        if kept and timedelta(0) <= now - kept[0] < _RENEW_AFTER:
            return kept[1]
        (found,) = self.log.evidence([machine], now - LOOKBACK, now)
        learned = fit_profile(found.series, now)
        if learned is None and kept and kept[1]:
            learned = kept[1]  # a machine that is silent for weeks has not lost its rhythm
        self._profiles[machine.row_id] = (now, learned)
        return learned


def _strangest_first(silent: list[SilentMachine]) -> list[SilentMachine]:
    return sorted(silent, key=lambda one: -one.overdue_hours / one.usual_hours)
