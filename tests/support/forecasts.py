"""The forecast scheduler of a service, with another publisher."""

from datetime import timedelta
from typing import Any

from service.app.service import Service
from service.app.stores import Stores
from service.forecasts.scheduler import ForecastScheduler
from wire.forecasts import Forecast
from wire.identity import MachineId


class Announced:
    """An announcer that remembers."""

    def __init__(self) -> None:
        self.machines: list[MachineId] = []

    def publish(self, machine: MachineId, encoded: bytes) -> None:
        assert Forecast.model_validate_json(encoded)
        self.machines.append(machine)


def refresh(service: Service, stores: Stores, announced: Announced, **more: Any) -> ForecastScheduler:
    return ForecastScheduler(
        desk=service.desk,
        newest=service.newest,
        machines=stores.machines,
        stored=stores.forecasts,
        mqtt=announced,
        clock=service.clock,
        step=timedelta(minutes=15),
        **more,
    )
