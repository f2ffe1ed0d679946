"""Acknowledgements of likely or raised alarms."""

from alarmcast.endpoint import Resource, TransportT, operation
from alarmcast.requests import MachineName, RequestSpec, path_params
from wire.rest.suppression import AcknowledgementCreate, AcknowledgementPage, AcknowledgementView


class Acknowledgements(Resource[TransportT]):
    """``client.acknowledgements``."""

    @operation("GET /v1/machines/{site}/{machine}/acknowledgements", AcknowledgementPage)
    def list_for(
        self, machine: MachineName, *, limit: int = 100, cursor: int | None = None, active: bool = False
    ) -> RequestSpec:
        """Return the acknowledgements of a machine, newest first."""
        return RequestSpec(at=path_params(machine), params={"limit": limit, "cursor": cursor, "active": active})

    @operation("POST /v1/machines/{site}/{machine}/acknowledgements", AcknowledgementView)
    def acknowledge(
        self, machine: MachineName, code: int, *, note: str | None = None, by: str | None = None
    ) -> RequestSpec:
        """Acknowledge an alarm."""
        return RequestSpec(at=path_params(machine), body=AcknowledgementCreate(code=code, note=note, by=by))
