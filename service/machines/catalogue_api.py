"""The alarm catalogue: what the codes mean."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Body

from service.http.problems import responses
from service.machines.catalogue import parse_catalogue, size_warning
from wire.rest.catalogue import CatalogueMergeResult, CatalogueView, EntryView

if TYPE_CHECKING:
    from service.app.api_services import AppServices


def router(parts: "AppServices") -> APIRouter:
    """Return the routes of the catalogue."""
    routes = APIRouter(prefix="/v1/catalogue", tags=["catalogue"])

    @routes.get("")
    def read_catalogue() -> CatalogueView:
        """Every known code with its text, its severity and whether it is forecast."""
        entries = parts.catalogue.entries().values()
        return CatalogueView(
            entries=[EntryView(code=e.code, text=e.text, severity=e.severity, target=e.target) for e in entries]
        )

    @routes.post("", responses=responses(409, 422))
    def add_to_catalogue(
        body: Annotated[
            str,
            Body(
                media_type="text/csv",
                max_length=1_000_000,
                examples=["code,text,severity,target\n139,Film torn,high,yes\n"],
            ),
        ],
    ) -> CatalogueMergeResult:
        """Add a CSV with the columns code, text, severity and target; a code keeps the text it has."""
        entries = parse_catalogue(body)
        new = parts.catalogue.merge(entries)
        return CatalogueMergeResult(
            entries=len(entries), new=new, warning=size_warning(parts.catalogue.entries().values())
        )

    return routes
