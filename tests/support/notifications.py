"""Forecasts that become notifications on real stores, with a plant clock that a test sets."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta

from service.app.stores import Stores
from service.forecasts.cache import CachedForecast
from service.messaging.bus import ChangeBus
from service.notifications.models import (
    HysteresisPolicy,
    Notification,
    NotificationQuery,
)
from service.notifications.policy_store import PolicyStore
from service.notifications.service import NotificationService
from service.notifications.store import NotificationStore, WebhookStore
from service.notifications.suppression import SuppressionService
from service.notifications.suppression_store import AcknowledgementStore, MaintenanceStore, ShelvingStore
from tests.service.conftest import FILLER, NOW
from wire.clock import PlantClock
from wire.enums import NotificationEnd
from wire.forecasts import Forecast, ForecastStatus, LikelyAlarm
from wire.identity import MachineId

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
TARGETS = {139: ("Film torn", "high"), 26: ("Door open", "low")}


def forecast(
    at: datetime,
    probabilities: dict[int, float],
    machine: MachineId = FILLER,
    status: ForecastStatus = ForecastStatus.OK,
) -> Forecast:
    return Forecast(
        site=machine.site,
        machine=machine.machine,
        as_of=at,
        window_start=at - timedelta(minutes=1720),
        window_end=at,
        horizon_end=at + 8 * HOUR,
        events_seen=1,
        coverage=1.0,
        model_version="v1",
        status=status,
        alarms=[
            LikelyAlarm(
                code=code,
                text=TARGETS[code][0],
                severity=TARGETS[code][1],
                probability=probability,
                base_rate=None,
                threshold=0.5,
                expected=probability >= 0.5,
            )
            for code, probability in probabilities.items()
        ],
    )


@dataclass
class Harness:
    """The flow on real stores, with a plant clock that a test sets."""

    stores: Stores
    now: datetime = NOW
    service: NotificationService = field(init=False)
    suppression: SuppressionService = field(init=False)

    def __post_init__(self) -> None:
        database, clock = self.stores.database, PlantClock(wall=self.seconds)
        self.notifications = NotificationStore(database)
        bus = ChangeBus()
        self.suppression = SuppressionService(
            machines=self.stores.machines,
            shelves=ShelvingStore(database),
            windows=MaintenanceStore(database),
            acknowledgements=AcknowledgementStore(database),
            clock=clock,
            max_shelving=timedelta(days=7),
            bus=bus,
        )
        self.service = NotificationService(
            suppression=self.suppression,
            events=self.stores.events,
            notifications=self.notifications,
            policies=PolicyStore(database),
            webhooks=WebhookStore(database),
            wall=lambda: datetime.now(UTC),
            policy=HysteresisPolicy(0.8, HOUR),
            shifts=(time(6), time(14), time(22)),
        )
        self.service.subscribe_to(bus)

    def seconds(self) -> float:
        return self.now.timestamp()

    def say(
        self,
        probabilities: dict[int, float],
        *,
        after: timedelta = timedelta(0),
        machine: MachineId = FILLER,
        status: ForecastStatus = ForecastStatus.OK,
    ) -> int:
        """Let time pass, announce a forecast, look at it, and return how many notices were opened."""
        self.now += after
        made = forecast(self.now, probabilities, machine, status)
        self.service.on_forecast(CachedForecast(machine, made, b""))
        return self.service.run_once()

    def ends(self) -> list[NotificationEnd | None]:
        """Return how each notice stands, oldest first; None is open."""
        return [notice.ended for notice in self.found()]

    def found(self) -> list[Notification]:
        return self.notifications.page(NotificationQuery())[::-1]
