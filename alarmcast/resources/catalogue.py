"""The alarm catalogue: what the codes mean."""

from alarmcast.endpoint import Resource, TransportT, operation
from alarmcast.requests import RequestSpec
from wire.rest.catalogue import CatalogueMergeResult, CatalogueView


class Catalogue(Resource[TransportT]):
    """``client.catalogue``."""

    @operation("GET /v1/catalogue", CatalogueView)
    def get(self) -> RequestSpec:
        """Return every known code with its text, its severity and whether it is forecast."""
        return RequestSpec()

    @operation("POST /v1/catalogue", CatalogueMergeResult)
    def add(self, csv: str | bytes) -> RequestSpec:
        """Add codes from a CSV with the columns code, text, severity and target; a code keeps the text it has."""
        content = csv.encode() if isinstance(csv, str) else csv
        return RequestSpec(content=content, media_type="text/csv; charset=utf-8")
