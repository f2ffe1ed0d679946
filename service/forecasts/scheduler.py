"""The rhythm of forecasts: stored and announced on the grid, announced in between when something arrives."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from forecasting.window import grid_floor
from service.forecasts.cache import CachedForecast, ForecastCache, ForecastMade
from service.forecasts.service import ForecastService
from service.forecasts.store import ForecastStore
from service.machines.models import Machine
from service.messaging.bus import ChangeBus
from service.messaging.mqtt_client import MqttClient
from wire.clock import PlantClock
from wire.identity import MachineId
from wire.topics import Channel, topic

_MAX_MISSED = 60.0  # seconds before we lead, in which who led before may have been lost with something untold
_LEAP: Final = timedelta(hours=1)  # so much ahead of the time that has passed is a leap
_MOST: Final = 1_000  # moments after which a clock that leapt is taken for right


class ClockLeap:
    """Observes the moments of the grid, in the order in which they are used."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._last: tuple[datetime, float] | None = None
        self._since_leap: list[datetime] | None = None

    def observe(self, at: datetime, seconds: float) -> list[datetime]:
        """Take the next moment and the monotonic clock; return the moments used while the clock was ahead."""
        last, self._last = self._last, (at, seconds)
        if last is None:
            return []
        wrong: list[datetime] = []
        if self._since_leap and at < self._since_leap[0]:
            wrong, self._since_leap = self._since_leap, None
        elif at - last[0] - timedelta(seconds=(seconds - last[1]) * self._speed) > _LEAP:
            self._since_leap = []
        if self._since_leap is not None:
            self._since_leap.append(at)
            if len(self._since_leap) > _MOST:
                self._since_leap = None
        return wrong


@dataclass(frozen=True)
class ForecastPublisher:
    """Publishes each machine's newest forecast."""

    link: MqttClient

    def publish(self, machine: MachineId, encoded: bytes) -> None:
        """Replace the machine's retained forecast."""
        self.link.publish(topic(machine, Channel.FORECAST), encoded, retain=True)

    def clear(self, machine: MachineId) -> None:
        """Take the machine's retained forecast away; an HMI must not show it for ever."""
        self.link.publish(topic(machine, Channel.FORECAST), b"", retain=True)


@dataclass
class ForecastScheduler:
    """Runs often, does little: whatever the clock and the arrivals call for.

    One process at a time leads: it stores forecasts and publishes them over MQTT. A process with streams of its
    own (``has_streams``) makes the same forecasts for them.
    """

    desk: ForecastService
    newest: ForecastCache
    stored: ForecastStore
    mqtt: ForecastPublisher
    bus: ChangeBus
    clock: PlantClock
    step: timedelta
    has_streams: bool = False
    is_leader: Callable[[], bool] = lambda: True
    monotonic: Callable[[], float] = time.monotonic
    _done: tuple[datetime, bool] | None = None
    _leap: ClockLeap = field(init=False)
    _last_version: int | None = None
    _led: bool = False
    _missed: dict[MachineId, float] = field(default_factory=dict)  # what another was to tell, and since when

    def __post_init__(self) -> None:
        self._leap = ClockLeap(self.clock.speed)

    @property
    def idle(self) -> bool:
        """Whether nobody here wants a forecast now."""
        return not self.has_streams and not self.is_leader()

    def run_grid(self) -> int:
        """Make the forecasts of the grid's last moment, once, and store them if we lead; return how many.

        Moments that passed while nobody ran are gone: a forecast made later would not have been one.
        """
        at, leads = grid_floor(self.clock.now(), self.step), self.is_leader()
        if self._done in ((at, leads), (at, True)):
            return 0
        if leads and (wrong := self._leap.observe(at, self.monotonic())):
            self.stored.forget(
                wrong[0], wrong[-1]
            )  # they were never due, and would stand in the way of those that will be
        already = self.stored.made_at(at) if leads else set()
        due = [machine for machine in self._connected() if machine.row_id not in already]
        seen = self.newest.versions
        made = self.desk.forecast_now(due, at)
        if leads:
            self.stored.add([one.stored for one in made])
        for one in made:
            self._announce(self.newest.put(one, seen), leads=leads)
        self._done = (at, leads)
        return len(made) if leads else 0

    def on_promotion(self) -> None:
        """Have every machine's forecast made anew when another version has begun to serve."""
        version = self.desk.champion.current().version.id
        if version != self._last_version:
            self.newest.invalidate(machine.id for machine in self.desk.machines.all())
            self._last_version = version

    def on_leadership(self) -> None:
        """Once we lead, have forecasts made anew of what arrived lately: who led before may not have told them.

        Of that alone, because a large fleet takes long.
        """
        leads = self.is_leader()
        if leads and not self._led:
            since = self.monotonic() - _MAX_MISSED
            self.newest.invalidate([machine for machine, at in self._missed.items() if at >= since])
            self._missed.clear()
        self._led = leads

    def skip(self) -> None:
        """Leave to whoever leads what has arrived, and only note that it has."""
        self._led = False
        self._leave(self.newest.drain_invalidated())

    def run_changed(self) -> int:
        """Announce new forecasts of the machines that something arrived for; return how many."""
        touched, leads = self.newest.drain_invalidated(), self.is_leader()
        if not leads:
            self._leave(touched)
        try:
            machines = [machine for machine in self._connected() if machine.id in touched] if touched else []
            forecasts = self.newest.fresh_for(machines)
        except Exception:
            self.newest.invalidate(touched)  # they still want a forecast when the trouble is over
            raise
        for newest in forecasts:
            self._announce(newest, leads=leads)
        return len(machines)

    def _connected(self) -> list[Machine]:
        """Return the machines that have connected at least once; an imported past says nothing about now."""
        agents = self.desk.machines.agents()
        return [machine for machine in self.desk.machines.all() if machine.id in agents]

    def _leave(self, touched: Iterable[MachineId]) -> None:
        self._missed |= dict.fromkeys(touched, self.monotonic())

    def _announce(self, newest: CachedForecast, *, leads: bool) -> None:
        if leads:
            self.mqtt.publish(newest.machine, newest.published)
        self.bus.publish(ForecastMade(newest, leads))
