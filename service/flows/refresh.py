"""The rhythm of forecasts: stored and announced on the grid, announced in between when something arrives."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from forecasting.window import grid_floor
from service.flows.forecast import ForecastDesk
from service.flows.newest import Newest, NewestForecasts
from service.flows.ports import Announcer, Machines, StoredForecasts
from wire.clock import PlantClock


@dataclass
class Refresh:
    """Runs often, does little: whatever the clock and the arrivals call for.

    ``told`` hear of every forecast that is announced; they must not block.
    """

    desk: ForecastDesk
    newest: NewestForecasts
    machines: Machines
    stored: StoredForecasts
    announcer: Announcer
    clock: PlantClock
    step: timedelta
    told: tuple[Callable[[Newest], None], ...] = ()
    _done: datetime | None = None
    _spoken: int | None = None

    def on_the_grid(self) -> int:
        """Make, store and announce the forecasts of the grid's last moment, once; return how many.

        Moments that passed while nobody ran are gone: a forecast made later would not have been one.
        """
        at = grid_floor(self.clock.now(), self.step)
        if at == self._done:
            return 0
        already = self.stored.made_at(at)
        due = [machine for machine in self.machines.all() if machine.row not in already]
        seen = self.newest.arrivals
        made = self.desk.now(due, at)
        self.stored.add([one.stored for one in made])
        for one in made:
            self._announce(self.newest.keep(one, seen))
        self._done = at
        return len(made)

    def on_promotion(self) -> None:
        """Have every machine's forecast made anew when another version has begun to serve."""
        version = self.desk.champion.current().version.number
        if version != self._spoken:
            self.newest.touch(machine.id for machine in self.machines.all())
            self._spoken = version

    def in_between(self) -> int:
        """Announce new forecasts of the machines that something arrived for; return how many."""
        touched = self.newest.take_touched()
        try:
            machines = [machine for machine in self.machines.all() if machine.id in touched] if touched else []
            forecasts = self.newest.of(machines)
        except Exception:
            self.newest.touch(touched)  # they still want a forecast when the trouble is over
            raise
        for newest in forecasts:
            self._announce(newest)
        return len(machines)

    def _announce(self, newest: Newest) -> None:
        self.announcer.announce(newest.machine, newest.encoded)
        for tell in self.told:
            tell(newest)
