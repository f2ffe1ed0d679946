"""Timelines: alarms of a machine with floods, chattering periods and gaps."""

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
        """Return the alarms of a machine in ``[since, until)``, by default the last 28 hours."""
        return RequestSpec(at=path_params(machine), params={"since": since, "until": until})
