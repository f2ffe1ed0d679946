"""The alarm catalogue: what the codes mean, and how to respond to them."""

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from wire.enums import EntryOrigin, Severity
from wire.rest.texts import PRINTABLE, PrintableText

_LINK: Final = r'^(https?://[^\x00-\x20\x7f"<>\\/?#][^\x00-\x20\x7f"<>\\]*)?$'
_Words = Annotated[str | None, Field(max_length=500, pattern=PRINTABLE)]
_RESPONSE: Final[dict[str, Any]] = {
    "cause": "Web edge damaged or tension too high",
    "consequence": "The machine stops and the package in the jaws is lost",
    "action": "Splice the film and check the tension roller",
    "link": "https://wiki.example/alarms/139",
}
_EXAMPLE: Final[dict[str, Any]] = {
    "code": 139,
    "text": "Film torn",
    "severity": "high",
    "target": True,
    "response": _RESPONSE,
    "origin": "admin",
}


_EXAMPLE_UPDATE: Final = {name: value for name, value in _EXAMPLE.items() if name not in ("code", "origin")}


class AlarmResponse(BaseModel):
    """The alarm response after ISA-18.2; null where the catalogue has none."""

    model_config = ConfigDict(frozen=True)

    cause: str | None = Field(default=None, description="Likely cause.")
    consequence: str | None = Field(default=None, description="What follows if nothing is done.")
    action: str | None = Field(default=None, description="Corrective action.")
    link: str | None = Field(default=None, description="Procedure or manual; an http or https address.")


class ResponseUpdate(AlarmResponse):
    """An alarm response as it may be sent."""

    cause: _Words = None
    consequence: _Words = None
    action: _Words = None
    link: Annotated[str | None, Field(max_length=500, pattern=_LINK)] = None


NO_RESPONSE: Final = AlarmResponse()


class EntryUpdate(BaseModel):
    """Everything the catalogue holds of one code."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE_UPDATE]})

    text: Annotated[PrintableText, Field(max_length=200)]
    severity: Severity
    target: bool = Field(description="Whether the code is forecast.")
    response: ResponseUpdate = ResponseUpdate()


class EntryView(BaseModel):
    """One alarm code in words."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    code: int
    text: str
    severity: str
    target: bool
    response: AlarmResponse
    origin: EntryOrigin = Field(
        default=EntryOrigin.ADMIN,
        description="`machine`: text and severity are from the machine, and the code is not forecast until an "
        "admin saves the entry.",
    )


class CatalogueView(BaseModel):
    """Every code the fleet knows."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"entries": [_EXAMPLE]}]})

    entries: list[EntryView]


class CatalogueMergeResult(BaseModel):
    """What became of a given catalogue."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"entries": 154, "new": 3}]})

    entries: int
    new: int
    warning: str | None = Field(default=None, description="What the whole catalogue now makes worth knowing.")
