"""Moments as whole microseconds since 1970: how spool, store and arrays keep time, exactly."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import AwareDatetime, Field, PlainSerializer

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY, _SECOND = 86_400_000_000, 1_000_000


def to_us(at: datetime) -> int:
    """Return a moment as whole microseconds since 1970."""
    since = at - _EPOCH
    return since.days * _DAY + since.seconds * _SECOND + since.microseconds


def from_us(at_us: int) -> datetime:
    """Return the UTC moment that many microseconds after 1970."""
    return _EPOCH + timedelta(microseconds=int(at_us))


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
