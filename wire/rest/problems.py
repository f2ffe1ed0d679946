"""What went wrong, after RFC 9457."""

from pydantic import BaseModel, Field


class FieldError(BaseModel):
    """One thing that is wrong with a request."""

    pointer: str = Field(description="Where: the query parameter, or the path into the body.")
    detail: str


class Problem(BaseModel):
    """What went wrong, for people and programs."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    instance: str
    errors: list[FieldError] = []
