"""Build what this process needs of machines."""

from dataclasses import dataclass
from datetime import timedelta

from service.database.engine import Database
from service.machines.event_store import EventStore
from service.machines.quarantine_store import QuarantineStore
from service.machines.retention import ClockCheck, Retention
from service.machines.retention_store import RetentionStore
from service.machines.silence import SilenceDetector
from service.machines.store import MachineCache, MachineStore
from service.messaging.bus import ChangeBus
from service.settings import Settings


@dataclass(frozen=True)
class MachineServices:
    """The registry as ingest uses it, silence detection, the quarantine and retention."""

    cache: MachineCache
    silence: SilenceDetector
    quarantine: QuarantineStore
    retention: Retention
    clock_check: ClockCheck


def build(
    settings: Settings, database: Database, *, machines: MachineStore, events: EventStore, bus: ChangeBus
) -> MachineServices:
    """Build the services; silence detection subscribes to stored events."""
    silence = SilenceDetector(machines, events)
    silence.subscribe_to(bus)
    store, keep = RetentionStore(database), timedelta(days=settings.retention_days)
    retention = Retention(
        store,
        keep=keep,
        keep_quarantined=timedelta(days=settings.quarantine_days),
        most_bytes=None if settings.retention_gb is None else int(settings.retention_gb * 1e9),
    )
    clock_check = ClockCheck(store, keep, settings.retention_confirmed_until)
    return MachineServices(MachineCache(machines), silence, QuarantineStore(database), retention, clock_check)
