"""Shelves: alarms that nobody wants to hear of for a while."""

from datetime import datetime

from alarmcast.call import Ask, MachineName, named
from alarmcast.endpoint import Noun, S, operation
from wire.rest.hush import ShelfPage, ShelfView, ShelfWish


class Shelves(Noun[S]):
    """``client.shelves``."""

    @operation("GET /v1/shelves", ShelfPage)
    def everywhere(self, *, limit: int = 100, cursor: int | None = None, active: bool = True) -> Ask:
        """Return what is shelved anywhere, newest first; with ``active=False`` what was, too."""
        return Ask(params={"limit": limit, "cursor": cursor, "active": active})

    @operation("GET /v1/machines/{site}/{machine}/shelves", ShelfPage)
    def of(self, machine: MachineName, *, limit: int = 100, cursor: int | None = None, active: bool = True) -> Ask:
        """Return what is shelved on a machine, newest first; with ``active=False`` what was, too."""
        return Ask(at=named(machine), params={"limit": limit, "cursor": cursor, "active": active})

    @operation("POST /v1/machines/{site}/{machine}/shelves", ShelfView)
    def shelve(
        self,
        machine: MachineName,
        code: int,
        *,
        reason: str,
        minutes: int | None = None,
        until: datetime | None = None,
        by: str | None = None,
    ) -> Ask:
        """Keep an alarm of a machine quiet for so many minutes, or until an end in plant time."""
        wish = ShelfWish(code=code, minutes=minutes, until=until, reason=reason, by=by)
        return Ask(at=named(machine), body=wish)

    @operation("DELETE /v1/machines/{site}/{machine}/shelves/{number}", ShelfView)
    def lift(self, machine: MachineName, number: int, *, reason: str | None = None) -> Ask:
        """End a shelf before its time."""
        return Ask(at={**named(machine), "number": number}, params={"reason": reason})
