"""What went wrong, after RFC 9457."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from wire.identity import ID_PATTERN
from wire.rest.auth import NAME_PATTERN
from wire.rest.texts import PRINTABLE


class FieldError(BaseModel):
    """One thing that is wrong with a request."""

    pointer: str = Field(description="Where: the query parameter, or the path into the body.")
    detail: str


class Problem(BaseModel):
    """What went wrong, for people and programs."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "about:blank",
                    "title": "Input rejected",
                    "status": 422,
                    "detail": "query/limit: Input should be greater than or equal to 1.",
                    "instance": "/v1/machines/padova/filler-1/alarms",
                    "errors": [{"pointer": "query/limit", "detail": "Input should be greater than or equal to 1"}],
                }
            ]
        }
    )

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    instance: str
    errors: list[FieldError] = []


def in_words(error: Mapping[str, Any]) -> str:
    """Return what pydantic says is wrong with a field, without a pattern that only programmers read."""
    pattern = error.get("ctx", {}).get("pattern")
    if pattern == ID_PATTERN:
        return "An id has 1 to 63 lower-case letters, digits, - and _, and begins with a letter or a digit"
    if pattern == NAME_PATTERN:
        return "A name has 1 to 63 lower-case letters, digits, ., - and _, and begins with a letter or a digit"
    if pattern == PRINTABLE:
        return "It may hold no line ends and no other characters that cannot be printed"
    return str(error["msg"])
