"""The newest forecast of each machine: kept in memory with its bytes, made anew when anything touches it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from threading import Event, Lock

from service.forecasts.service import ForecastResult, ForecastService
from service.machines.models import Machine
from wire.clock import PlantClock
from wire.codec import MAX_BYTES, encode, exceeds_limit
from wire.forecasts import Forecast, PublishedForecast
from wire.identity import MachineId


@dataclass(frozen=True)
class CachedForecast:
    """A forecast and the bytes that REST and, as far as they fit into a message, MQTT send for it."""

    machine: MachineId
    forecast: Forecast
    encoded: bytes

    @cached_property
    def published(self) -> bytes:
        """The bytes for MQTT: the whole, or as many alarms as fit into a message and how many were left out.

        Alarms that are expected come first, then the likeliest.
        """
        if not exceeds_limit(self.encoded):
            return self.encoded
        alarms = self.forecast.alarms
        frame = PublishedForecast(**self.forecast.model_dump(exclude={"alarms"}), alarms=[], omitted=len(alarms))
        room = MAX_BYTES - len(encode(frame))
        kept = []
        for place in sorted(range(len(alarms)), key=lambda place: not alarms[place].expected):
            room -= len(encode(alarms[place])) + 1  # and a comma
            if room < 0:
                break
            kept.append(place)
        fitting = {"alarms": [alarms[place] for place in sorted(kept)], "omitted": len(alarms) - len(kept)}
        return encode(frame.model_copy(update=fitting))


@dataclass(frozen=True)
class ForecastMade:
    """A new forecast of a machine, published on the change bus in this process; ``leads``: by the leader."""

    newest: CachedForecast
    leads: bool


class ForecastCache:
    """At most ``max_age`` of plant time old; an event or a change of state makes it old at once."""

    def __init__(self, desk: ForecastService, *, clock: PlantClock, max_age: timedelta) -> None:
        self._desk, self._clock, self._max_age = desk, clock, max_age
        self._lock = Lock()
        self._kept: dict[MachineId, CachedForecast] = {}
        self._touched: set[MachineId] = set()
        self._arrivals = 0
        self._last_arrival: dict[MachineId, int] = {}
        self.arrived = Event()  # set while some machine is touched

    def invalidate(self, machines: Iterable[MachineId]) -> None:
        """Note that something arrived for these machines."""
        with self._lock:
            self._arrivals += 1
            for machine in machines:
                self._touched.add(machine)
                self._last_arrival[machine] = self._arrivals
                self._kept.pop(machine, None)
                self.arrived.set()

    def drain_invalidated(self) -> set[MachineId]:
        """Return and forget which machines were touched since the last time."""
        with self._lock:
            touched, self._touched = self._touched, set()
            self.arrived.clear()
            return touched

    def get_fresh(self, machine: MachineId) -> CachedForecast | None:
        """Return what is kept, if it is fresh; never asks the store, never blocks."""
        kept = self._kept.get(machine)
        if kept is None or self._clock.now() - kept.forecast.as_of > self._max_age:
            return None
        return kept

    def get(self, machine: MachineId) -> CachedForecast | None:
        """Return what is kept, however old: all that has arrived is in it, and the grid renews it."""
        return self._kept.get(machine)

    def version(self, machine: MachineId) -> int:
        """Return the number of the machine's last arrival: as long as it is the same, nothing has come for it."""
        return self._last_arrival.get(machine, 0)

    def get_or_make(self, machines: list[Machine]) -> list[CachedForecast]:
        """Return what is kept for each machine, making in one pass those for which nothing is."""
        missing = [machine for machine in machines if self._kept.get(machine.id) is None]
        made = {one.machine: one for one in self.fresh_for(missing)}
        found = (self._kept.get(machine.id) or made.get(machine.id) for machine in machines)
        return [one for one in found if one]

    def fresh_for(self, machines: list[Machine]) -> list[CachedForecast]:
        """Return a fresh forecast for each machine, making in one pass those that are not."""
        found = {machine.id: self.get_fresh(machine.id) for machine in machines}
        missing = [machine for machine in machines if found[machine.id] is None]
        if missing:
            seen = self.versions
            made = self._desk.forecast_now(missing, self._clock.now())
            found |= {machine.id: self.put(one, seen) for machine, one in zip(missing, made, strict=True)}
        return [newest for machine in machines if (newest := found[machine.id])]

    @property
    def versions(self) -> int:
        """How often something has arrived: read before a forecast is made, given back when it is kept."""
        return self._arrivals

    def put(self, made: ForecastResult, seen: int) -> CachedForecast:
        """Remember a forecast that was just made and return the newest there is.

        One that was begun before its machine's last arrival is served to whoever asked for it, but not kept:
        it cannot know what has arrived since.
        """
        forecast = made.forecast
        machine = MachineId(forecast.site, forecast.machine)
        newest = CachedForecast(machine, forecast, encode(forecast))
        with self._lock:
            kept = self._kept.get(machine)
            if kept is not None and kept.forecast.as_of > forecast.as_of:
                return kept
            if self._last_arrival.get(machine, 0) <= seen:
                self._kept[machine] = newest
        return newest
