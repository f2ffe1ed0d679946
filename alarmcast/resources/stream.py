"""The stream: forecasts and alarms as they happen."""

from collections.abc import Collection

from alarmcast.endpoint import Resource, TransportT, events
from alarmcast.requests import RequestSpec
from wire.enums import StreamKind
from wire.forecasts import Forecast
from wire.rest.stream import Missed, RaisedAlarm

StreamItem = Forecast | RaisedAlarm | Missed
_ITEM_TYPES: dict[str, type[StreamItem]] = {"forecast": Forecast, "alarm": RaisedAlarm, "missed": Missed}


class Stream(Resource[TransportT]):
    """``client.stream``."""

    @events("/v1/stream", _ITEM_TYPES, endless=True)
    def events(
        self, *, site: str | None = None, machine: str | None = None, kinds: Collection[StreamKind] | None = None
    ) -> RequestSpec:
        """Yield what happens, in the whole fleet or a part of it: the present forecasts first, then all news.

        It goes on until you close it. Where the service ends it, because it stops, ``Unreachable`` is raised.
        """
        names = None if kinds is None else ",".join(kinds)
        return RequestSpec(params={"site": site, "machine": machine, "kinds": names})
