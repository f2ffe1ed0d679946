"""What the codes mean."""

from pydantic import BaseModel


class EntryView(BaseModel):
    """One alarm code in words."""

    code: int
    text: str
    severity: str
    target: bool


class CatalogueView(BaseModel):
    """Every code the fleet knows."""

    entries: list[EntryView]


class Merged(BaseModel):
    """What became of a given catalogue."""

    entries: int
    new: int
