"""The alarm catalogue: what the codes mean."""

from alarmcast.endpoint import Resource, TransportT, download, operation
from alarmcast.requests import RequestSpec
from wire.enums import Severity
from wire.rest.catalogue import (
    NO_RESPONSE,
    AlarmResponse,
    CatalogueMergeResult,
    CatalogueView,
    EntryUpdate,
    EntryView,
    ResponseUpdate,
)


class Catalogue(Resource[TransportT]):
    """``client.catalogue``."""

    @operation("GET /v1/catalogue", CatalogueView)
    def get(self) -> RequestSpec:
        """Return every known code: its text and severity, whether it is forecast, and the alarm response."""
        return RequestSpec()

    @operation("GET /v1/catalogue/{code}", EntryView)
    def entry(self, code: int) -> RequestSpec:
        """Return one code with its alarm response."""
        return RequestSpec(at={"code": code})

    @operation("PUT /v1/catalogue/{code}", EntryView)
    def edit(
        self, code: int, *, text: str, severity: Severity, target: bool, response: AlarmResponse = NO_RESPONSE
    ) -> RequestSpec:
        """Add a code, or replace all that the catalogue holds of it."""
        sent = ResponseUpdate(**response.model_dump())
        body = EntryUpdate(text=text, severity=severity, target=target, response=sent)
        return RequestSpec(at={"code": code}, body=body)

    @download("/v1/catalogue.csv")
    def export(self) -> RequestSpec:
        """Yield the catalogue as CSV, which ``add`` accepts."""
        return RequestSpec()

    @operation("POST /v1/catalogue", CatalogueMergeResult)
    def add(self, csv: str | bytes) -> RequestSpec:
        """Add codes from a CSV with the columns code, text, severity and target; a code keeps the text it has.

        The columns cause, consequence, action and link are optional.
        """
        content = csv.encode() if isinstance(csv, str) else csv
        return RequestSpec(content=content, media_type="text/csv; charset=utf-8")
