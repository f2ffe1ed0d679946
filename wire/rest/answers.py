"""Answers of operators to notifications and expected alarms."""

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from wire.enums import Answer
from wire.events import Code
from wire.identity import Identifier
from wire.rest.texts import PrintableText
from wire.timestamps import UtcDatetime

_ANSWER: Final[dict[str, Any]] = {
    "id": 12,
    "site": "padova",
    "machine": "filler-1",
    "code": 139,
    "text": "Film torn",
    "notification": 41,
    "answer": "handled",
    "note": "Tension roller replaced",
    "actor": "anna",
    "at": "2026-11-16T08:09:00.000Z",
}


class AnswerCreate(BaseModel):
    """An answer to a notification."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"answer": "handled", "note": "Roller replaced"}]})

    answer: Answer
    note: Annotated[PrintableText, Field(max_length=500)] | None = None


class AlarmAnswerCreate(AnswerCreate):
    """An answer to an expected alarm of a machine."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"code": 139, "answer": "wrong", "note": None}]})

    code: Code


class AnswerView(BaseModel):
    """One answer."""

    model_config = ConfigDict(json_schema_extra={"examples": [_ANSWER]})

    id: int
    site: Identifier
    machine: Identifier
    code: Code
    text: str
    notification: int | None = Field(description="Null if the alarm was expected without an open notification.")
    answer: Answer
    note: str | None
    actor: str
    at: UtcDatetime = Field(description="Plant time.")


class AnswerPage(BaseModel):
    """Answers, newest first; ``next`` is the cursor of the next page, null on the last."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"answers": [_ANSWER], "next": None}]})

    answers: list[AnswerView]
    next: int | None


class AnswerCounts(BaseModel):
    """How often an alarm of a machine was answered in each way."""

    site: Identifier
    machine: Identifier
    code: Code
    text: str
    handled: int = 0
    useful: int = 0
    wrong: int = 0
