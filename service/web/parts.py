"""What the routers are given: the flows and ports behind the API."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Path

from service.core.health import Health
from service.flows.forecast import ForecastDesk
from service.flows.newest import NewestForecasts
from service.flows.ports import Catalogue, EventLog, Machines
from wire.clock import PlantClock
from wire.identity import ID_PATTERN

Site = Annotated[str, Path(pattern=ID_PATTERN, description="The plant.", examples=["padova"])]
MachineName = Annotated[str, Path(pattern=ID_PATTERN, description="The machine.", examples=["filler-1"])]


@dataclass(frozen=True)
class Parts:
    """Everything a request may need."""

    machines: Machines
    log: EventLog
    catalogue: Catalogue
    desk: ForecastDesk
    newest: NewestForecasts
    clock: PlantClock
    health: Callable[[], Health]
