"""API keys: which programs may ask."""

from collections.abc import Sequence

from alarmcast.endpoint import Resource, TransportT, operation
from alarmcast.requests import RequestSpec
from wire.enums import Role
from wire.rest.auth import ApiKeyCreate, ApiKeyList, NewApiKey


class Keys(Resource[TransportT]):
    """``client.keys``; ``sites=None`` is every site."""

    @operation("GET /v1/keys", ApiKeyList)
    def list(self) -> RequestSpec:
        """Return every key without its secret, oldest first."""
        return RequestSpec()

    @operation("POST /v1/keys", NewApiKey)
    def add(
        self, name: str, *, role: Role = Role.VIEWER, sites: Sequence[str] | None = None, days: int | None = None
    ) -> RequestSpec:
        """Make a key for a program; the answer shows it this once."""
        named = None if sites is None else [*sites]
        return RequestSpec(body=ApiKeyCreate(name=name, role=role, sites=named, days=days))

    @operation("DELETE /v1/keys/{number}", type(None))
    def revoke(self, number: int, *, reason: str | None = None) -> RequestSpec:
        """Take a key back, at once."""
        return RequestSpec(at={"number": number}, params={"reason": reason})
