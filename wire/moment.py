"""Moments on the wire: aware, written in UTC, within a century that a packaging machine can live in."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import AwareDatetime, Field, PlainSerializer

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
LATEST = datetime(2100, 1, 1, tzinfo=UTC)


def isoformat(at: datetime) -> str:
    """Write a moment as the wire does: UTC with a ``Z``, microseconds only where there are any."""
    whole_milliseconds = at.microsecond % 1000 == 0
    spec = "milliseconds" if whole_milliseconds else "microseconds"
    return at.astimezone(UTC).isoformat(timespec=spec).replace("+00:00", "Z")


def clamped(at: datetime) -> datetime:
    """Return the nearest moment that the wire can carry: a computer with a flat battery starts in 1970."""
    return min(max(at, EARLIEST), LATEST - timedelta(seconds=1))


UtcDatetime = Annotated[
    AwareDatetime,
    # Seconds sent as milliseconds and year-9999 sentinels both fall outside.
    Field(ge=EARLIEST, lt=LATEST),
    PlainSerializer(isoformat, return_type=str, when_used="json"),
]
