"""Build the notification feature."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from service import __version__
from service.answers.store import AnswerStore
from service.auth.audit_store import AuditStore
from service.database.engine import Database
from service.http.principal import current_sites
from service.machines.catalogue_store import CatalogueStore
from service.machines.event_store import EventStore
from service.machines.models import MachineReader
from service.machines.store import MachineStore
from service.messaging.bus import ChangeBus, NotificationsChanged
from service.notifications import api, policy_api, suppression_api
from service.notifications.models import HysteresisPolicy
from service.notifications.policy_service import PolicyService
from service.notifications.policy_store import PolicyStore
from service.notifications.service import NotificationService
from service.notifications.store import DeliveryStore, NotificationStore, WebhookStore
from service.notifications.suppression import SuppressionService
from service.notifications.suppression_store import AcknowledgementStore, MaintenanceStore, ShelvingStore
from service.notifications.thread import NotificationThread, WebhookSender
from service.notifications.webhook import AllowedAddresses
from service.notifications.webhook_client import WebhookClient
from service.notifications.webhook_service import WebhookService
from service.settings import Settings
from wire.clock import PlantClock

if TYPE_CHECKING:
    from fastapi import APIRouter


@dataclass(frozen=True)
class Notifications:
    """Services and threads of the feature; they see every site, the routes only the sites of the caller."""

    service: NotificationService
    suppression: SuppressionService
    deliveries: DeliveryStore
    client: WebhookClient
    thread: NotificationThread
    sender: WebhookSender
    bus: ChangeBus
    public_url: str

    def routers(
        self, machines: MachineReader, catalogue: CatalogueStore, audit: AuditStore
    ) -> "tuple[APIRouter, ...]":
        """Return the routes; ``machines`` must be limited to the caller's sites, as the stores here are."""
        database, clock = self.service.notifications.database, self.suppression.clock
        suppression = replace(
            self.suppression,
            machines=machines,
            shelves=ShelvingStore(database, current_sites),
            windows=MaintenanceStore(database, current_sites),
        )
        policies = PolicyStore(database, current_sites)
        webhooks = WebhookService(
            machines, WebhookStore(database, current_sites), policies, catalogue, self.client, clock
        )
        return (
            api.router(
                notifications=NotificationStore(database, current_sites),
                acknowledgements=self.suppression.acknowledgements,
                deliveries=self.deliveries,
                answers=AnswerStore(database, current_sites),
                webhooks=webhooks,
                audit=audit,
                public_url=self.public_url,
            ),
            policy_api.router(PolicyService(machines, policies, catalogue, clock, self.bus), webhooks),
            suppression_api.router(suppression, catalogue),
        )


def build(
    settings: Settings,
    database: Database,
    *,
    machines: MachineStore,
    events: EventStore,
    clock: PlantClock,
    wall: Callable[[], datetime],
    bus: ChangeBus,
) -> Notifications:
    """Build the feature."""
    suppression = SuppressionService(
        machines=machines,
        shelves=ShelvingStore(database),
        windows=MaintenanceStore(database),
        acknowledgements=AcknowledgementStore(database),
        clock=clock,
        max_shelving=timedelta(hours=settings.shelving_max_hours),
        bus=bus,
    )
    deliveries = DeliveryStore(database)
    service = NotificationService(
        suppression=suppression,
        events=events,
        notifications=NotificationStore(database),
        policies=PolicyStore(database),
        webhooks=WebhookStore(database),
        wall=wall,
        policy=HysteresisPolicy(
            settings.notification_release_ratio, timedelta(minutes=settings.notification_quiet_minutes)
        ),
        shifts=tuple(settings.shift_starts.values()),
    )
    service.subscribe_to(bus)
    client = WebhookClient(agent=f"Alarmcast/{__version__}", allowed=AllowedAddresses(settings.receiver_networks))
    sender = WebhookSender(
        deliveries, client, wall=wall, plant=clock.now, chance=random.random, public_url=settings.public_url
    )
    service.on_change = sender.on_change = lambda: bus.publish(NotificationsChanged())
    thread = NotificationThread(service)
    return Notifications(service, suppression, deliveries, client, thread, sender, bus, settings.public_url)
