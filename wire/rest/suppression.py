"""Suppression of notifications: shelved alarms, maintenance windows, acknowledgements."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from wire.events import Code
from wire.identity import Identifier
from wire.rest.texts import PrintableText
from wire.timestamps import UtcDatetime

By = Annotated[
    PrintableText | None,
    Field(
        max_length=100,
        description="The user that a program with an API key acts for; stored with the name of the key. "
        "Not allowed for a logged-in user.",
    ),
]
Reason = Annotated[PrintableText, Field(max_length=1000, description="Recorded in the audit log.")]
_SHELF: JsonDict = {
    "id": 7,
    "site": "padova",
    "machine": "filler-1",
    "code": 139,
    "text": "Film torn",
    "from": "2026-11-16T08:00:00.000Z",
    "until": "2026-11-16T12:00:00.000Z",
    "unshelved_at": None,
    "active": True,
    "actor": "Anna (api:10.0.0.7)",
    "reason": "The sensor is being replaced",
}


class ShelveRequest(BaseModel):
    """Shelve an alarm for some minutes or until a time."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"code": 139, "minutes": 240, "reason": "The sensor is being replaced"}]},
    )

    code: Code
    minutes: int | None = Field(default=None, ge=1, le=10**6, description="For how long, in plant time.")
    until: UtcDatetime | None = Field(default=None, description="End, instead of minutes.")
    reason: Reason
    by: By = None

    @model_validator(mode="after")
    def _require_one_end(self) -> Self:
        if (self.minutes is None) == (self.until is None):
            raise ValueError("give either minutes or until")
        return self


class ShelvedAlarmView(BaseModel):
    """An alarm that is or was shelved."""

    model_config = ConfigDict(populate_by_name=True, json_schema_extra={"examples": [_SHELF]})

    id: int
    site: Identifier
    machine: Identifier
    code: int
    text: str
    start: UtcDatetime = Field(validation_alias="from", serialization_alias="from")
    until: UtcDatetime
    unshelved_at: UtcDatetime | None = Field(description="When it was ended early, if it was.")
    active: bool = Field(description="Whether it is active now.")
    actor: str
    reason: str


class ShelvedAlarmPage(BaseModel):
    """Shelved alarms, newest first; ``next`` is the cursor of the next page, null on the last."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"shelves": [_SHELF], "next": None}]})

    shelves: list[ShelvedAlarmView]
    next: int | None


class MaintenanceCreate(BaseModel):
    """Schedule a maintenance window."""

    model_config = ConfigDict(
        extra="forbid",
        populate_by_name=True,
        json_schema_extra={
            "examples": [
                {
                    "site": "padova",
                    "machine": "filler-1",
                    "from": "2026-11-20T06:00:00.000Z",
                    "until": "2026-11-20T14:00:00.000Z",
                    "reason": "Yearly overhaul",
                }
            ]
        },
    )

    site: Identifier
    machine: Identifier | None = Field(default=None, description="Default: the whole site.")
    start: UtcDatetime | None = Field(
        default=None,
        validation_alias="from",
        serialization_alias="from",
        description="Start in plant time; default now.",
    )
    until: UtcDatetime
    reason: Reason
    by: By = None


_WINDOW: JsonDict = {
    "id": 3,
    "site": "padova",
    "machine": None,
    "from": "2026-11-20T06:00:00.000Z",
    "until": "2026-11-20T14:00:00.000Z",
    "cancelled_at": None,
    "active": False,
    "actor": "api:10.0.0.7",
    "reason": "Yearly overhaul",
}


class MaintenanceView(BaseModel):
    """A time without notifications of a machine or a site."""

    model_config = ConfigDict(populate_by_name=True, json_schema_extra={"examples": [_WINDOW]})

    id: int
    site: Identifier
    machine: Identifier | None = Field(description="Null for the whole site.")
    start: UtcDatetime = Field(validation_alias="from", serialization_alias="from")
    until: UtcDatetime
    cancelled_at: UtcDatetime | None = Field(description="When it was ended early, if it was.")
    active: bool = Field(description="Whether it is active now.")
    actor: str
    reason: str


class MaintenancePage(BaseModel):
    """Maintenance windows, newest first; ``next`` is the cursor of the next page, null on the last."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"windows": [_WINDOW], "next": None}]})

    windows: list[MaintenanceView]
    next: int | None


class AcknowledgementCreate(BaseModel):
    """Acknowledge a likely or raised alarm."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"code": 139, "note": "New reel is on its way", "by": "Anna"}]},
    )

    code: Code
    note: PrintableText | None = Field(default=None, max_length=1000, description="Comment.")
    by: By = None


_ACKNOWLEDGEMENT: JsonDict = {
    "id": 12,
    "site": "padova",
    "machine": "filler-1",
    "code": 139,
    "text": "Film torn",
    "at": "2026-11-16T08:00:00.000Z",
    "actor": "Anna (api:10.0.0.7)",
    "note": "New reel is on its way",
    "notification": 41,
    "ended_at": None,
}


class AcknowledgementView(BaseModel):
    """An acknowledged alarm; no new notification is sent until it is no longer likely."""

    model_config = ConfigDict(json_schema_extra={"examples": [_ACKNOWLEDGEMENT]})

    id: int
    site: Identifier
    machine: Identifier
    code: int
    text: str
    at: UtcDatetime
    actor: str
    note: str | None
    notification: int | None = Field(description="The notification that was open then.")
    ended_at: UtcDatetime | None = Field(description="When the alarm was no longer likely; null while active.")


class AcknowledgementPage(BaseModel):
    """Acknowledgements, newest first; ``next`` is the cursor of the next page, null on the last."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"acknowledgements": [_ACKNOWLEDGEMENT], "next": None}]}
    )

    acknowledgements: list[AcknowledgementView]
    next: int | None
