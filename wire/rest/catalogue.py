"""What the codes mean."""

from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

_EXAMPLE: Final[dict[str, Any]] = {"code": 139, "text": "Film torn", "severity": "high", "target": True}


class EntryView(BaseModel):
    """One alarm code in words."""

    code: int
    text: str
    severity: str
    target: bool


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
