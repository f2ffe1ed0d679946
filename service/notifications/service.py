"""Evaluate new forecasts: open, close and rearm notifications."""

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
from service.notifications.models import (
    HysteresisPolicy,
    MaintenanceWindow,
    Notification,
    NotificationChanges,
    Observation,
    is_cleared,
    next_transition,
)
from service.notifications.store import NotificationStore
from service.notifications.suppression_store import AcknowledgementStore, MaintenanceStore, ShelvingStore
from wire.clock import PlantClock
from wire.enums import NotificationEnd
from wire.forecasts import Forecast, ForecastStatus
from wire.identity import MachineId
from wire.timestamps import to_us

_CHUNK = 50  # changes in one transaction, so that ingest never waits long
_CLOCK_TOLERANCE = timedelta(hours=1)  # a machine's clock may be ahead


@dataclass(frozen=True)
class NotificationContext:
    """What an evaluation needs beside the forecasts, read once for all machines."""

    at: datetime
    last: dict[MachineId, dict[int, Notification]]  # the last notification by code
    shelved: dict[MachineId, set[int]]
    windows: list[MaintenanceWindow]
    acknowledged: dict[MachineId, dict[int, list[int]]]  # ids of active acknowledgements by code

    def suppression(self, machine: MachineId, code: int) -> NotificationEnd | None:
        if code in self.shelved.get(machine, ()):
            return NotificationEnd.SHELVED
        covered = any(window.covers(machine, self.at) for window in self.windows)
        return NotificationEnd.MAINTENANCE if covered else None


@dataclass
class NotificationService:
    """Collects published forecasts; ``run_once``, called by a thread, evaluates them."""

    machines: MachineStore
    events: EventStore
    notifications: NotificationStore
    shelves: ShelvingStore
    windows: MaintenanceStore
    acknowledgements: AcknowledgementStore
    clock: PlantClock
    wall: Callable[[], datetime]
    policy: HysteresisPolicy
    opened: int = 0
    pending: Event = field(default_factory=Event)  # set while there are forecasts to evaluate
    _lock: Lock = field(default_factory=Lock)
    _waiting: dict[MachineId, Forecast] = field(default_factory=dict)
    _last: dict[MachineId, Forecast] = field(default_factory=dict)

    def subscribe_to(self, bus: ChangeBus) -> None:
        """Evaluate the leader's forecasts, and a machine or site again when its suppression has changed."""
        bus.subscribe(SuppressionChanged, lambda event: self.reevaluate(event.site, event.machine))
        bus.subscribe(ForecastMade, lambda event: self.on_forecast(event.newest) if event.leads else None)

    def on_forecast(self, newest: CachedForecast) -> None:
        """Queue a published forecast; never blocks, never queries the database."""
        with self._lock:
            self._waiting[newest.machine] = newest.forecast
            self.pending.set()

    def reevaluate(self, site: str, machine: str | None) -> None:
        """Queue the last forecasts of a machine or a whole site after a change of suppression."""
        with self._lock:
            for machine_id, forecast in self._last.items():
                if machine_id.site == site and machine in {None, machine_id.machine}:
                    self._waiting.setdefault(machine_id, forecast)
            self.pending.set()

    def run_once(self, pause: Callable[[], object] = lambda: None) -> int:
        """Evaluate queued forecasts and write the changes; return how many notifications were opened.

        ``pause`` is called between two transactions. A notification and its deliveries share one transaction.
        """
        with self._lock:
            waiting, self._waiting = self._waiting, {}
            self._last |= waiting
            self.pending.clear()
        opened = 0
        try:
            changes, now = self._evaluate(waiting)
            for index, chunk in enumerate(changes.chunks(_CHUNK)):
                if index:
                    pause()
                opened += self.notifications.write(chunk, at=now, wall=self.wall())
        except Exception:
            with self._lock:  # evaluate them again at the next run
                self._waiting = waiting | self._waiting
                self.pending.set()
            raise
        finally:
            self.opened += opened
        return opened

    def _evaluate(self, waiting: dict[MachineId, Forecast]) -> tuple[NotificationChanges, datetime]:
        fleet = {machine.id: machine for machine in self.machines.all()}
        context = self._context([fleet[machine].row_id for machine in waiting if machine in fleet])
        changes = NotificationChanges()
        for retired in (set(context.last) | set(context.acknowledged)) - set(fleet):
            self._evaluate_machine(None, None, retired, context, changes)
        for machine, forecast in waiting.items():
            if machine in fleet:
                self._evaluate_machine(fleet[machine], forecast, machine, context, changes)
        with self._lock:
            self._last = {machine: forecast for machine, forecast in self._last.items() if machine in fleet}
        return changes, context.at

    def _context(self, machine_ids: list[int]) -> NotificationContext:
        now = self.clock.now()
        context = NotificationContext(
            now, defaultdict(dict), defaultdict(set), self.windows.active(now), defaultdict(dict)
        )
        # In order of id, so that the last notification of a code wins.
        for notification in self.notifications.current(machine_ids, now - self.policy.cooldown):
            context.last[notification.machine][notification.code] = notification
        for shelved in self.shelves.active(now):
            context.shelved[shelved.machine].add(shelved.code)
        for ack in self.acknowledgements.active():
            context.acknowledged[ack.machine].setdefault(ack.code, []).append(ack.id)
        return context

    def _evaluate_machine(
        self,
        machine: Machine | None,
        forecast: Forecast | None,
        machine_id: MachineId,
        context: NotificationContext,
        changes: NotificationChanges,
    ) -> None:
        """Evaluate every code that is expected, has a notification or is acknowledged; None if retired."""
        alarms = {alarm.code: alarm for alarm in forecast.alarms} if forecast else {}
        last_by_code, acks = context.last.get(machine_id, {}), context.acknowledged.get(machine_id, {})
        occurred: set[int] = set()
        if machine and forecast:
            occurred = self._occurred(machine, forecast, last_by_code.values(), context.at)
        trusted = forecast is not None and forecast.status is ForecastStatus.OK
        expected = {code for code, alarm in alarms.items() if alarm.expected}
        for code in sorted(expected | set(last_by_code) | set(acks)):
            last, alarm = last_by_code.get(code), alarms.get(code)
            suppression = context.suppression(machine_id, code)
            observation = Observation(
                context.at, alarm, trusted, code in occurred, suppression, acknowledged=code in acks
            )
            if is_cleared(observation, self.policy):
                changes.ended_acks += acks.get(code, [])
            transition = next_transition(observation, last, self.policy)
            if transition.opens and machine and forecast and alarm:
                notification = Notification(
                    id=0,
                    machine=machine_id,
                    code=code,
                    text=alarm.text,
                    severity=alarm.severity,
                    as_of=forecast.as_of,
                    horizon_end=forecast.horizon_end,
                    probability=alarm.probability,
                    threshold=alarm.threshold,
                    model_version=forecast.model_version,
                    opened_at=context.at,
                )
                changes.opened.append((machine.row_id, notification))
            if last and transition.closes:
                changes.closed.append((last.id, transition.closes))
            if last and transition.rearms:
                changes.rearmed.append(last.id)

    def _occurred(
        self, machine: Machine, forecast: Forecast, notifications: Iterable[Notification], now: datetime
    ) -> set[int]:
        """Return the codes of open notifications that were raised since the forecast that opened them."""
        still_open = [notification for notification in notifications if notification.is_open]
        if not still_open:
            return set()
        since = max(min(notification.as_of for notification in still_open), forecast.window_start)
        series = self.events.series(machine, since, now + _CLOCK_TOLERANCE)
        latest = dict(zip(series.codes.tolist(), series.times.tolist(), strict=True))  # the last of each code wins
        return {
            notification.code
            for notification in still_open
            if latest.get(notification.code, -1) >= to_us(notification.as_of)
        }
