"""Acknowledgements: somebody knows of a likely or raised alarm."""

from alarmcast.call import Ask, MachineName, named
from alarmcast.endpoint import Noun, S, operation
from wire.rest.hush import AcknowledgementPage, AcknowledgementView, AcknowledgementWish


class Acknowledgements(Noun[S]):
    """``client.acknowledgements``."""

    @operation("GET /v1/machines/{site}/{machine}/acknowledgements", AcknowledgementPage)
    def of(
        self, machine: MachineName, *, limit: int = 100, cursor: int | None = None, active: bool = False
    ) -> Ask:
        """Return who has acknowledged which alarms of a machine, newest first."""
        return Ask(at=named(machine), params={"limit": limit, "cursor": cursor, "active": active})

    @operation("POST /v1/machines/{site}/{machine}/acknowledgements", AcknowledgementView)
    def acknowledge(
        self, machine: MachineName, code: int, *, note: str | None = None, by: str | None = None
    ) -> Ask:
        """Say that an alarm is known."""
        return Ask(at=named(machine), body=AcknowledgementWish(code=code, note=note, by=by))
