"""Shelved alarms: alarms without notifications for a limited time."""

from datetime import datetime

from alarmcast.endpoint import Resource, TransportT, operation
from alarmcast.requests import MachineName, RequestSpec, path_params
from wire.rest.suppression import ShelvedAlarmPage, ShelvedAlarmView, ShelveRequest


class Shelves(Resource[TransportT]):
    """``client.shelves``."""

    @operation("GET /v1/shelves", ShelvedAlarmPage)
    def list_all(self, *, limit: int = 100, cursor: int | None = None, active: bool = True) -> RequestSpec:
        """Return the shelved alarms of all machines, newest first; ``active=False`` includes expired ones."""
        return RequestSpec(params={"limit": limit, "cursor": cursor, "active": active})

    @operation("GET /v1/machines/{site}/{machine}/shelves", ShelvedAlarmPage)
    def list_for(
        self, machine: MachineName, *, limit: int = 100, cursor: int | None = None, active: bool = True
    ) -> RequestSpec:
        """Return the shelved alarms of a machine, newest first; ``active=False`` includes expired ones."""
        return RequestSpec(at=path_params(machine), params={"limit": limit, "cursor": cursor, "active": active})

    @operation("POST /v1/machines/{site}/{machine}/shelves", ShelvedAlarmView)
    def shelve(
        self,
        machine: MachineName,
        code: int,
        *,
        reason: str,
        minutes: int | None = None,
        until: datetime | None = None,
        by: str | None = None,
    ) -> RequestSpec:
        """Shelve an alarm of a machine for some minutes, or until a plant time."""
        body = ShelveRequest(code=code, minutes=minutes, until=until, reason=reason, by=by)
        return RequestSpec(at=path_params(machine), body=body)

    @operation("DELETE /v1/machines/{site}/{machine}/shelves/{number}", ShelvedAlarmView)
    def unshelve(self, machine: MachineName, number: int, *, reason: str | None = None) -> RequestSpec:
        """Unshelve an alarm before its end."""
        return RequestSpec(at={**path_params(machine), "number": number}, params={"reason": reason})
