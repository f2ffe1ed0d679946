"""The audit log."""

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from wire.timestamps import UtcDatetime

_ENTRY: JsonDict = {
    "id": 7,
    "at": "2026-11-16T08:05:00.000Z",
    "actor": "maria",
    "action": "shelve",
    "subject": "padova/filler-1 code 139",
    "reason": "Film is being changed",
    "origin": "192.0.2.7",
}


class AuditEntry(BaseModel):
    """Who did what to which thing, when, from where and why."""

    model_config = ConfigDict(json_schema_extra={"examples": [_ENTRY]})

    id: int
    at: UtcDatetime = Field(
        description="Wall time of the request; of what the service did by itself, its plant time."
    )
    actor: str
    action: str
    subject: str
    reason: str | None
    origin: str | None = Field(description="The address it was asked from; null if the service did it by itself.")


class AuditPage(BaseModel):
    """Entries, newest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"entries": [_ENTRY], "next": None}]})

    entries: list[AuditEntry]
    next: int | None = Field(description="Cursor of the next page, if there is one.")
