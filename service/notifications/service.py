"""Newest forecasts to notices: what is news is opened with its deliveries, what has gone is closed."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Event, Lock

from service.forecasts.cache import CachedForecast, ForecastMade
from service.machines.event_store import EventStore
from service.machines.models import Machine
from service.machines.store import MachineStore
from service.messaging.bus import ChangeBus, SuppressionChanged
from service.notifications.acknowledgement_store import AcknowledgementStore
from service.notifications.maintenance_store import MaintenanceStore
from service.notifications.models import (
    HysteresisPolicy,
    Notification,
    NotificationChanges,
    Observation,
    is_cleared,
    next_transition,
)
from service.notifications.shelving_store import ShelvingStore
from service.notifications.store import NotificationStore
from service.notifications.suppression import MaintenanceWindow
from wire.clock import PlantClock
from wire.enums import NotificationEnd
from wire.forecasts import Forecast, ForecastStatus
from wire.identity import MachineId
from wire.timestamps import to_us

_PIECE = 50  # changes in one transaction, so that ingest never waits long behind them
_AHEAD = timedelta(hours=1)  # a machine's clock may run a little fast


@dataclass(frozen=True)
class NotificationContext:
    """What decides about notices beside the forecasts, read once for all machines of a look."""

    at: datetime
    notices: dict[MachineId, dict[int, Notification]]  # each code's last
    shelved: dict[MachineId, set[int]]
    windows: list[MaintenanceWindow]
    acknowledged: dict[MachineId, dict[int, list[int]]]  # by code, the numbers of those that hold

    def suppression(self, machine: MachineId, code: int) -> NotificationEnd | None:
        """Say what keeps a code of a machine quiet, if anything does."""
        if code in self.shelved.get(machine, ()):
            return NotificationEnd.SHELVED
        covered = any(window.covers(machine, self.at) for window in self.windows)
        return NotificationEnd.MAINTENANCE if covered else None

    def machines(self) -> set[MachineId]:
        """Return the machines that have something to lose."""
        return set(self.notices) | set(self.acknowledged)


@dataclass
class NotificationService:
    """Told of forecasts as they are announced; looks at them, and asks the store, when its thread has time."""

    machines: MachineStore
    log: EventStore
    notices: NotificationStore
    shelves: ShelvingStore
    windows: MaintenanceStore
    acknowledgements: AcknowledgementStore
    clock: PlantClock
    wall: Callable[[], datetime]
    policy: HysteresisPolicy
    opened: int = 0
    pending: Event = field(default_factory=Event)  # set while there is something to look at
    _lock: Lock = field(default_factory=Lock)
    _waiting: dict[MachineId, Forecast] = field(default_factory=dict)
    _last: dict[MachineId, Forecast] = field(default_factory=dict)

    def subscribe_to(self, bus: ChangeBus) -> None:
        """Evaluate the leader's forecasts, and a machine or site again when its suppression has changed."""
        bus.subscribe(SuppressionChanged, lambda event: self.reevaluate(event.site, event.machine))
        bus.subscribe(ForecastMade, lambda event: self.on_forecast(event.newest) if event.leads else None)

    def on_forecast(self, newest: CachedForecast) -> None:
        """Take a forecast that was just announced; never blocks, never asks the store."""
        with self._lock:
            self._waiting[newest.machine] = newest.forecast
            self.pending.set()

    def reevaluate(self, site: str, machine: str | None) -> None:
        """Look once more at the last forecast of a machine or a site, because what keeps it quiet has changed."""
        with self._lock:
            for one, forecast in self._last.items():
                if one.site == site and machine in {None, one.machine}:
                    self._waiting.setdefault(one, forecast)
            self.pending.set()

    def run_once(self, pause: Callable[[], object] = lambda: None) -> int:
        """Judge what waits and write what comes of it; return how many notices were opened.

        ``pause`` is called between two pieces. A notice and its deliveries are always of one piece.
        """
        with self._lock:
            waiting, self._waiting = self._waiting, {}
            self._last |= waiting
            self.pending.clear()
        opened = 0
        try:
            changes, now = self._evaluate(waiting)
            for number, piece in enumerate(changes.chunks(_PIECE)):
                if number:
                    pause()
                opened += self.notices.write(piece, at=now, wall=self.wall())
        except Exception:
            with self._lock:  # they are still to be judged when the trouble is over
                self._waiting = waiting | self._waiting
                self.pending.set()
            raise
        finally:
            self.opened += opened
        return opened

    def _evaluate(self, waiting: dict[MachineId, Forecast]) -> tuple[NotificationChanges, datetime]:
        fleet = {machine.id: machine for machine in self.machines.all()}
        around = self._context([fleet[machine].row_id for machine in waiting if machine in fleet])
        changes = NotificationChanges()
        for gone in around.machines() - set(fleet):
            self._one(None, None, gone, around, changes)
        for machine, forecast in waiting.items():
            if machine in fleet:
                self._one(fleet[machine], forecast, machine, around, changes)
        with self._lock:
            self._last = {one: kept for one, kept in self._last.items() if one in fleet}
        return changes, around.at

    def _context(self, rows: list[int]) -> NotificationContext:
        now = self.clock.now()
        around = NotificationContext(
            now, defaultdict(dict), defaultdict(set), self.windows.active(now), defaultdict(dict)
        )
        for notice in self.notices.current(rows, now - self.policy.quiet):  # oldest first, so the last one stays
            around.notices[notice.machine][notice.code] = notice
        for shelf in self.shelves.active(now):
            around.shelved[shelf.machine].add(shelf.code)
        for known in self.acknowledgements.active():
            around.acknowledged[known.machine].setdefault(known.code, []).append(known.id)
        return around

    def _one(
        self,
        machine: Machine | None,
        forecast: Forecast | None,
        name: MachineId,
        around: NotificationContext,
        changes: NotificationChanges,
    ) -> None:
        """Judge every code of a machine that is expected, or that anything is known of."""
        alarms = {alarm.code: alarm for alarm in forecast.alarms} if forecast else {}
        lasts, known = around.notices.get(name, {}), around.acknowledged.get(name, {})
        came = self._came(machine, forecast, lasts.values(), around.at) if machine and forecast else set()
        trusted = forecast is not None and forecast.status is ForecastStatus.OK
        expected = {code for code, alarm in alarms.items() if alarm.expected}
        for code in sorted(expected | set(lasts) | set(known)):
            last, alarm = lasts.get(code), alarms.get(code)
            hush = around.suppression(name, code)
            sight = Observation(around.at, alarm, trusted, code in came, hush, acknowledged=code in known)
            if is_cleared(sight, self.policy):
                changes.ended_acks += known.get(code, [])
            verdict = next_transition(sight, last, self.policy)
            if verdict.opens and machine and forecast and alarm:
                news = Notification(
                    id=0,
                    machine=name,
                    code=code,
                    text=alarm.text,
                    severity=alarm.severity,
                    as_of=forecast.as_of,
                    horizon_end=forecast.horizon_end,
                    probability=alarm.probability,
                    threshold=alarm.threshold,
                    model_version=forecast.model_version,
                    opened_at=around.at,
                )
                changes.opened.append((machine.row_id, news))
            if last and verdict.closes:
                changes.closed.append((last.id, verdict.closes))
            if last and verdict.rearms:
                changes.rearmed.append(last.id)

    def _came(
        self, machine: Machine, forecast: Forecast, lasts: Iterable[Notification], now: datetime
    ) -> set[int]:
        """Return the codes of open notices that were raised since the forecast that opened them."""
        standing = [notice for notice in lasts if notice.is_open]
        if not standing:
            return set()
        since = max(min(notice.as_of for notice in standing), forecast.window_start)
        series = self.log.series(machine, since, now + _AHEAD)
        latest = dict(
            zip(series.codes.tolist(), series.times.tolist(), strict=True)
        )  # in time order: the last stays
        return {one.code for one in standing if latest.get(one.code, -1) >= to_us(one.as_of)}
