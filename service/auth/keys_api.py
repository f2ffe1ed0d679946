"""API keys: which programs may ask."""

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query

from service.auth.models import ApiKey
from service.auth.users_api import sites_of
from service.http.pagination import Number
from service.http.problems import responses
from service.http.request import principal
from wire.rest.auth import ApiKeyCreate, ApiKeyList, ApiKeyView, NewApiKey
from wire.rest.texts import PrintableText

if TYPE_CHECKING:
    from service.app.api_services import AppServices


def router(parts: "AppServices") -> APIRouter:
    """Return the routes of keys."""
    routes = APIRouter(prefix="/v1/keys", tags=["people"])

    @routes.get("")
    def list_keys() -> ApiKeyList:
        """Every key without its secret; to an admin of some sites, those whose sites are all among them."""
        return ApiKeyList(keys=[_view(one) for one in parts.people.all_keys(principal())])

    @routes.post("", status_code=201, responses=responses(409, 422))
    def add_key(wish: ApiKeyCreate) -> NewApiKey:
        """Make a key for a program; it is shown this once, and only its sha256 is kept."""
        lasts = None if wish.days is None else timedelta(days=wish.days)
        made = parts.people.add_key(wish.name, wish.role, sites_of(wish.sites), lasts=lasts, by=principal())
        return NewApiKey(**_view(made.key).model_dump(), key=made.token)

    @routes.delete("/{number}", status_code=204, responses=responses(404, 422))
    def revoke_key(
        number: Number,
        reason: Annotated[
            PrintableText | None, Query(max_length=1000, description="Kept in the book of changes.")
        ] = None,
    ) -> None:
        """Take a key back, at once."""
        parts.people.revoke_key(number, by=principal(), reason=reason)

    return routes


def _view(key: ApiKey) -> ApiKeyView:
    return ApiKeyView(
        id=key.id,
        name=key.name,
        prefix=key.prefix,
        role=key.role,
        sites=None if key.sites is None else sorted(key.sites),
        created_at=key.created_at,
        created_by=key.created_by,
        expires_at=key.expires_at,
        used_at=key.used_at,
    )
