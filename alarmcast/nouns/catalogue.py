"""The alarm catalogue: what the codes mean."""

from alarmcast.call import Ask
from alarmcast.endpoint import Noun, S, operation
from wire.rest.catalogue import CatalogueView, Merged


class Catalogue(Noun[S]):
    """``client.catalogue``."""

    @operation("GET /v1/catalogue", CatalogueView)
    def get(self) -> Ask:
        """Return every known code with its text, its severity and whether it is forecast."""
        return Ask()

    @operation("POST /v1/catalogue", Merged)
    def add(self, csv: str | bytes) -> Ask:
        """Add codes from a CSV with the columns code, text, severity and target; a code keeps the text it has."""
        content = csv.encode() if isinstance(csv, str) else csv
        return Ask(content=content, media_type="text/csv; charset=utf-8")
