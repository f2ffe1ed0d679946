"""The forecast scheduler of a service, with another publisher."""

from datetime import timedelta
from typing import Any

from service.app.service import Service
from service.app.stores import Stores
from service.forecasts.scheduler import ForecastPublisher, ForecastScheduler
from tests.support.recording_mqtt import RecordingMqtt
from wire.forecasts import Forecast
from wire.identity import MachineId
from wire.topics import parse_topic


class Announced(RecordingMqtt):
    """The machines whose forecasts were published."""

    @property
    def machines(self) -> list[MachineId]:
        assert all(Forecast.model_validate_json(message.payload) for message in self.published)
        return [parse_topic(message.topic).machine for message in self.published]


def refresh(service: Service, stores: Stores, announced: Announced, **more: Any) -> ForecastScheduler:
    return ForecastScheduler(
        desk=service.forecasts.service,
        newest=service.forecasts.cache,
        stored=stores.forecasts,
        mqtt=ForecastPublisher(announced),  # type: ignore[arg-type]
        bus=service.bus,
        clock=service.clock,
        step=timedelta(minutes=15),
        **more,
    )
