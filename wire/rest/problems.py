"""What went wrong, after RFC 9457."""

from pydantic import BaseModel, ConfigDict, Field


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
