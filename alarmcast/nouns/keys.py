"""API keys: which programs may ask."""

from collections.abc import Sequence

from alarmcast.call import Ask
from alarmcast.endpoint import Noun, S, operation
from wire.rest.people import KeyList, KeyWish, NewKey
from wire.words import Role


class Keys(Noun[S]):
    """``client.keys``; ``sites=None`` is every site."""

    @operation("GET /v1/keys", KeyList)
    def list(self) -> Ask:
        """Return every key without its secret, oldest first."""
        return Ask()

    @operation("POST /v1/keys", NewKey)
    def add(
        self, name: str, *, role: Role = Role.VIEWER, sites: Sequence[str] | None = None, days: int | None = None
    ) -> Ask:
        """Make a key for a program; the answer shows it this once."""
        named = None if sites is None else [*sites]
        return Ask(body=KeyWish(name=name, role=role, sites=named, days=days))

    @operation("DELETE /v1/keys/{number}", type(None))
    def revoke(self, number: int, *, reason: str | None = None) -> Ask:
        """Take a key back, at once."""
        return Ask(at={"number": number}, params={"reason": reason})
