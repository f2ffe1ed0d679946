"""Build the forecasts of a process."""

from service.forecasts.base_rates import BaseRates
from service.forecasts.cache import ForecastCache
from service.forecasts.champion import ChampionCache
from service.machines.store import MachineStore
from service.messaging.bus import ChampionPromoted, ChangeBus, ChangesMissed, EventsStored, HistoryLoaded


def subscribe_caches(
    bus: ChangeBus, machines: MachineStore, cache: ForecastCache, base_rates: BaseRates, champion: ChampionCache
) -> None:
    """Invalidate the caches of forecasts when what they are made from has changed."""

    def on_events(event: EventsStored) -> None:
        base_rates.note_late(event.late)
        cache.invalidate(event.machines)

    def on_promotion(_event: ChampionPromoted | ChangesMissed) -> None:
        champion.invalidate()
        cache.invalidate(machine.id for machine in machines.all())

    bus.subscribe(EventsStored, on_events)
    bus.subscribe(HistoryLoaded, lambda event: cache.invalidate([event.machine]))
    bus.subscribe(ChampionPromoted, on_promotion)
    bus.subscribe(ChangesMissed, on_promotion)
