"""Build the ingest of this process and its connection to the broker."""

from dataclasses import dataclass
from datetime import timedelta

from service.ingest.inbox import BatchLimits, InboxLimits
from service.ingest.service import TimePolicy
from service.ingest.thread import Ingester
from service.machines.event_store import EventStore
from service.machines.store import MachineCache
from service.messaging.broker_connection import broker_config
from service.messaging.broker_stats import BrokerStats
from service.messaging.bus import ChangeBus, LeaseChanged
from service.messaging.mqtt_client import MqttClient, SubscriptionMode
from service.settings import Settings
from wire.clock import PlantClock
from wire.enums import ProcessRole
from wire.mqtt import MqttVersion


@dataclass(frozen=True)
class IngestServices:
    """The ingester, the MQTT client it acks over, and the statistics of the broker."""

    ingester: Ingester
    mqtt: MqttClient
    broker_stats: BrokerStats


def build(
    settings: Settings,
    machines: MachineCache,
    events: EventStore,
    *,
    clock: PlantClock,
    bus: ChangeBus,
    process_name: str,
) -> IngestServices:
    """Build the ingest; the MQTT client follows the lease for agent states."""
    ingester = Ingester(
        registry=machines,
        recorder=events,
        clock=clock,
        policy=time_policy(settings),
        limits=BatchLimits(settings.ingest_batch_events, settings.ingest_batch_ms / 1000),
        bus=bus,
        inbox=InboxLimits(settings.ingest_receive_maximum, settings.ingest_inbox_mb << 20),
        stale_after=settings.stale_after,
    )
    mode = _subscription_mode(settings, several_processes=not events.database.is_sqlite)
    name, stats = settings.broker_client_id, BrokerStats(queue_alarm=settings.broker_queue_warning)
    mqtt = MqttClient(
        broker_config(settings),
        client_id=name if mode is SubscriptionMode.EXCLUSIVE else f"{name}/{process_name}",
        receive_maximum=settings.ingest_receive_maximum,
        deliver=ingester.on_message,
        watch=stats,
        hearing=mode,
    )
    bus.subscribe(LeaseChanged, mqtt.on_lease_changed)
    return IngestServices(ingester, mqtt, stats)


def time_policy(settings: Settings) -> TimePolicy:
    """Return which event times are valid."""
    return TimePolicy(timedelta(minutes=settings.future_minutes), timedelta(days=settings.retention_days))


def _subscription_mode(settings: Settings, *, several_processes: bool) -> SubscriptionMode:
    if ProcessRole.INGEST not in settings.process_roles:
        return SubscriptionMode.NONE
    if not several_processes:
        return SubscriptionMode.EXCLUSIVE
    shared = settings.broker_mqtt_version is MqttVersion.V5
    return SubscriptionMode.SHARED if shared else SubscriptionMode.LEADER_ONLY
