"""Build the forecasts of this process."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from service.forecasts.base_rates import BaseRates
from service.forecasts.cache import ForecastCache
from service.forecasts.champion import ChampionCache
from service.forecasts.explanation import ExplanationService
from service.forecasts.scheduler import ForecastPublisher, ForecastScheduler
from service.forecasts.service import ForecastService
from service.forecasts.store import ForecastStore
from service.forecasts.streams import StreamHub
from service.forecasts.thread import ForecastThread
from service.forecasts.version_store import VersionStore
from service.machines.catalogue_store import CatalogueStore
from service.machines.event_store import EventStore
from service.machines.store import MachineStore
from service.messaging.bus import ChampionPromoted, ChangeBus, ChangesMissed, EventsStored, HistoryLoaded
from service.messaging.mqtt_client import MqttClient
from service.settings import Settings
from wire.clock import PlantClock
from wire.enums import ProcessRole


@dataclass(frozen=True)
class ForecastSources:
    """What forecasts are made from."""

    machines: MachineStore
    events: EventStore
    catalogue: CatalogueStore
    versions: VersionStore
    stored: ForecastStore


@dataclass(frozen=True)
class ForecastServices:
    """The services and the thread of forecasts."""

    service: ForecastService
    cache: ForecastCache
    explanations: ExplanationService
    publisher: ForecastPublisher
    thread: ForecastThread
    streams: StreamHub


def build(
    settings: Settings,
    sources: ForecastSources,
    *,
    clock: PlantClock,
    bus: ChangeBus,
    mqtt: MqttClient,
    is_leader: Callable[[], bool],
) -> ForecastServices:
    """Build the services; their caches are invalidated from the bus."""
    service = ForecastService(
        machines=sources.machines,
        log=sources.events,
        catalogue=sources.catalogue,
        champion=ChampionCache(sources.versions),
        base_rates=BaseRates(sources.events),
        clock=clock,
        stale_after=settings.stale_after,
    )
    cache = ForecastCache(service, clock=clock, max_age=timedelta(minutes=1))
    publisher = ForecastPublisher(mqtt)
    scheduler = ForecastScheduler(
        desk=service,
        newest=cache,
        stored=sources.stored,
        mqtt=publisher,
        bus=bus,
        clock=clock,
        step=timedelta(minutes=settings.grid_minutes),
        has_streams=ProcessRole.API in settings.process_roles,
        is_leader=is_leader,
    )
    _subscribe(bus, service, cache)
    streams = StreamHub(bus, max_streams=settings.stream_limit, max_per_owner=settings.streams_per_user)
    explanations = ExplanationService(service, cache)
    return ForecastServices(service, cache, explanations, publisher, ForecastThread(scheduler), streams)


def _subscribe(bus: ChangeBus, service: ForecastService, cache: ForecastCache) -> None:
    """Invalidate the caches when what forecasts are made from has changed."""

    def on_events(event: EventsStored) -> None:
        service.base_rates.note_late(event.late)
        cache.invalidate(event.machines)

    def on_promotion(_event: ChampionPromoted | ChangesMissed) -> None:
        service.champion.invalidate()
        cache.invalidate(machine.id for machine in service.machines.all())

    bus.subscribe(EventsStored, on_events)
    bus.subscribe(HistoryLoaded, lambda event: cache.invalidate([event.machine]))
    bus.subscribe(ChampionPromoted, on_promotion)
    bus.subscribe(ChangesMissed, on_promotion)
