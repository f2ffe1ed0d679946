"""The whole fleet at a glance."""

from alarmcast.call import Ask
from alarmcast.endpoint import Noun, S, operation
from wire.rest.fleet import FleetOverview


class Fleet(Noun[S]):
    """``client.fleet``."""

    @operation("GET /v1/fleet", FleetOverview)
    def overview(self, *, site: str | None = None, since: str | None = None) -> Ask:
        """Return every machine's card, most urgent first, or with a revision only the cards that changed since."""
        return Ask(params={"site": site, "since": since})
