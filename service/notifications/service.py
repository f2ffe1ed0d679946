"""Evaluate new forecasts: open, close and rearm notifications."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from math import inf
from threading import Event, Lock
from zoneinfo import ZoneInfo

from service.forecasts.alarm_value import alarm_value
from service.forecasts.cache import CachedForecast, ForecastMade
from service.machines.event_store import EventStore
from service.machines.models import Machine
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
from service.notifications.policy import DEFAULT_POLICY, notification_threshold, shift_start
from service.notifications.policy_store import PolicyStore
from service.notifications.store import NotificationStore, WebhookStore
from service.notifications.suppression import SuppressionService
from service.notifications.webhook import Webhook
from wire.enums import NotificationEnd
from wire.forecasts import EXPECTED_FROM, Forecast, ForecastStatus, LikelyAlarm
from wire.identity import MachineId
from wire.rest.policies import NotificationPolicy
from wire.timestamps import from_us, to_us

_CHUNK = 50  # changes in one transaction, so that ingest never waits long
SIMILAR_SPAN = timedelta(days=30)
_CLOCK_TOLERANCE = timedelta(hours=1)  # a machine's clock may be ahead


@dataclass(frozen=True)
class NotificationContext:
    """What an evaluation needs beside the forecasts, read once for all machines."""

    at: datetime
    last: dict[MachineId, dict[tuple[int, int], Notification]]  # the last notification by webhook and code
    shelved: dict[MachineId, set[int]]
    windows: list[MaintenanceWindow]
    acknowledged: dict[MachineId, dict[int, list[int]]]  # ids of active acknowledgements by code
    policies: dict[str, NotificationPolicy]  # by site
    receivers: list[Webhook]  # those with their own policy

    def subscriptions(self, machine: MachineId) -> dict[int, NotificationPolicy]:
        """Return the policies that apply to a machine, by webhook; 0 is that of its site."""
        own = {one.id: one.policy for one in self.receivers if one.policy and one.covers(machine)}
        return {0: self.policies.get(machine.site, DEFAULT_POLICY)} | own

    def accepts(self, webhook: int, machine: MachineId, severity: str) -> bool:
        return not webhook or any(one.id == webhook and one.accepts(machine, severity) for one in self.receivers)

    def suppression(self, machine: MachineId, code: int) -> NotificationEnd | None:
        if code in self.shelved.get(machine, ()):
            return NotificationEnd.SHELVED
        covered = any(window.covers(machine, self.at) for window in self.windows)
        return NotificationEnd.MAINTENANCE if covered else None


@dataclass
class NotificationService:
    """Collects published forecasts; ``run_once``, called by a thread, evaluates them."""

    suppression: SuppressionService
    events: EventStore
    notifications: NotificationStore
    policies: PolicyStore
    webhooks: WebhookStore
    wall: Callable[[], datetime]
    policy: HysteresisPolicy
    shifts: Sequence[time]
    on_change: Callable[[], None] = field(default_factory=lambda: lambda: None, init=False)  # after a write
    opened: int = field(default=0, init=False)
    pending: Event = field(default_factory=Event, init=False)  # set while there are forecasts to evaluate
    _lock: Lock = field(default_factory=Lock, init=False)
    _waiting: dict[MachineId, Forecast] = field(default_factory=dict, init=False)
    _last: dict[MachineId, Forecast] = field(default_factory=dict, init=False)

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
                self.on_change()
        except Exception:
            with self._lock:  # evaluate them again at the next run
                self._waiting = waiting | self._waiting
                self.pending.set()
            raise
        finally:
            self.opened += opened
        return opened

    def _evaluate(self, waiting: dict[MachineId, Forecast]) -> tuple[NotificationChanges, datetime]:
        fleet = {machine.id: machine for machine in self.suppression.machines.all()}
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
        now = self.suppression.clock.now()
        context = NotificationContext(
            now,
            defaultdict(dict),
            defaultdict(set),
            self.suppression.windows.active(now),
            defaultdict(dict),
            self.policies.all(),
            [webhook for webhook in self.webhooks.all() if webhook.policy],
        )
        # In order of id, so that the last notification of a code wins.
        for notification in self.notifications.current(machine_ids, now - self.policy.cooldown):
            context.last[notification.machine][notification.webhook, notification.code] = notification
        for shelved in self.suppression.shelves.active(now):
            context.shelved[shelved.machine].add(shelved.code)
        for ack in self.suppression.acknowledgements.active():
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
        """Evaluate every code of every policy that applies; ``machine`` is None if it is retired."""
        alarms = {alarm.code: alarm for alarm in forecast.alarms} if forecast else {}
        last_by_key, acks = context.last.get(machine_id, {}), context.acknowledged.get(machine_id, {})
        occurred: set[int] = set()
        if machine and forecast:
            occurred = self._occurred(machine, forecast, last_by_key.values(), context.at)
        trusted = forecast is not None and forecast.status is ForecastStatus.OK
        started = shift_start(context.at, ZoneInfo(machine.time_zone), self.shifts) if machine else None
        subscriptions = context.subscriptions(machine_id)
        changes.closed += [
            (last.id, NotificationEnd.WITHDRAWN)
            for (webhook, _), last in last_by_key.items()
            if webhook not in subscriptions and last.is_open
        ]
        for webhook, policy in subscriptions.items():
            opening: list[tuple[LikelyAlarm, float]] = []
            limits = {code: _threshold(policy, alarm) for code, alarm in alarms.items()}
            codes = {code for code, alarm in alarms.items() if alarm.probability >= limits[code]}
            codes |= {code for one, code in last_by_key if one == webhook} | (
                acks.keys() if not webhook else set()
            )
            for code in sorted(codes):
                last, alarm, limit = last_by_key.get((webhook, code)), alarms.get(code), limits.get(code, inf)
                observation = Observation(
                    context.at,
                    alarm,
                    trusted,
                    limit,
                    code in occurred,
                    context.suppression(machine_id, code),
                    acknowledged=code in acks,
                    shift_start=started,
                )
                transition = next_transition(observation, last, self.policy)
                if transition.opens and alarm and context.accepts(webhook, machine_id, alarm.severity):
                    opening.append((alarm, limit))
                if last and transition.closes:
                    changes.closed.append((last.id, transition.closes))
                if last and transition.rearms:
                    changes.rearmed.append(last.id)
                # An alarm without notifications can be acknowledged too, while it is expected.
                known = observation if limit < inf else observation._replace(threshold=EXPECTED_FROM)
                if not webhook and is_cleared(known, self.policy):
                    changes.ended_acks += acks.get(code, [])
            if machine and forecast and started and opening:
                changes.opened += self._open(machine, forecast, opening, webhook, policy, context.at, started)

    def _open(
        self,
        machine: Machine,
        forecast: Forecast,
        alarms: list[tuple[LikelyAlarm, float]],
        webhook: int,
        policy: NotificationPolicy,
        now: datetime,
        shift: datetime,
    ) -> list[tuple[int, Notification]]:
        """Return new notifications, the most valuable first; those over the limit of the shift are held back."""
        room = len(alarms)
        if policy.per_shift is not None:
            room = policy.per_shift - self.policies.sent_since(machine.row_id, webhook, shift)
        ordered = sorted(alarms, key=lambda pair: (-_value(pair[0]), -pair[0].probability, pair[0].code))
        opened = []
        for place, (alarm, limit) in enumerate(ordered):
            right, total = self._similar(machine, alarm.code, webhook, now)
            notification = Notification(
                id=0,
                machine=machine.id,
                code=alarm.code,
                text=alarm.text,
                severity=alarm.severity,
                as_of=forecast.as_of,
                horizon_end=forecast.horizon_end,
                probability=alarm.probability,
                threshold=limit,
                model_version=forecast.model_version,
                opened_at=now,
                webhook=webhook,
                held_back=place >= room,
                similar_right=right,
                similar_total=total,
            )
            opened.append((machine.row_id, notification))
        return opened

    def _similar(self, machine: Machine, code: int, webhook: int, now: datetime) -> tuple[int, int]:
        """Return how many of the alarm's notifications of the last 30 days were right, of how many.

        Right means that the alarm occurred within the horizon. A miss with a data gap does not count.
        """
        spans = self.policies.horizons(machine.row_id, code, webhook, now - SIMILAR_SPAN, now)
        if not spans:
            return 0, 0
        first, last = from_us(min(start for start, _ in spans)), from_us(max(end for _, end in spans))
        series = self.events.series(machine, first, last)
        times = series.times[series.codes == code]
        gaps = [(to_us(gap.first_at), to_us(gap.last_at)) for gap in self.events.gaps(machine, first, last)]
        occurred = [bool(((times >= start) & (times < end)).any()) for start, end in spans]
        lost = sum(
            not right and any(since < end and until >= start for since, until in gaps)
            for right, (start, end) in zip(occurred, spans, strict=True)
        )
        return sum(occurred), len(spans) - lost

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


def _threshold(policy: NotificationPolicy, alarm: LikelyAlarm) -> float:
    return notification_threshold(policy, alarm.code, alarm.severity, alarm.base_rate)


def _value(alarm: LikelyAlarm) -> float:
    return alarm_value(alarm.severity, alarm.probability, alarm.base_rate)
