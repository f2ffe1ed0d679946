"""Timelines: what a machine raised, with floods, chatter and gaps marked."""

from datetime import datetime

from alarmcast.call import Ask, MachineName, named
from alarmcast.endpoint import Noun, S, operation
from wire.rest.timelines import TimelineView


class Timelines(Noun[S]):
    """``client.timelines``."""

    @operation("GET /v1/machines/{site}/{machine}/timeline", TimelineView)
    def of(self, machine: MachineName, *, since: datetime | None = None, until: datetime | None = None) -> Ask:
        """Return everything the machine raised in ``[since, until)``, the last 28 hours unless given."""
        return Ask(at=named(machine), params={"since": since, "until": until})
