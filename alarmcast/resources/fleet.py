"""The whole fleet at a glance."""

from alarmcast.endpoint import Resource, TransportT, operation
from alarmcast.requests import RequestSpec
from wire.rest.fleet import FleetOverview


class Fleet(Resource[TransportT]):
    """``client.fleet``."""

    @operation("GET /v1/fleet", FleetOverview)
    def overview(self, *, site: str | None = None, since: str | None = None) -> RequestSpec:
        """Return every machine's card, most urgent first, or with a revision only the cards that changed since."""
        return RequestSpec(params={"site": site, "since": since})
