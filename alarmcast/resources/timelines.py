"""Timelines: what a machine raised, with floods, chatter and gaps marked."""

from datetime import datetime

from alarmcast.endpoint import Resource, TransportT, operation
from alarmcast.requests import MachineName, RequestSpec, path_params
from wire.rest.timelines import TimelineView


class Timelines(Resource[TransportT]):
    """``client.timelines``."""

    @operation("GET /v1/machines/{site}/{machine}/timeline", TimelineView)
    def get(
        self, machine: MachineName, *, since: datetime | None = None, until: datetime | None = None
    ) -> RequestSpec:
        """Return everything the machine raised in ``[since, until)``, the last 28 hours unless given."""
        return RequestSpec(at=path_params(machine), params={"since": since, "until": until})
