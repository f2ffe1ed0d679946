"""Moments as whole microseconds since 1970: how spool, store and arrays keep time, exactly."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros(at: datetime) -> int:
    """Return a moment as whole microseconds since 1970."""
    return (at - _EPOCH) // _MICROSECOND


def moment(at_us: int) -> datetime:
    """Return the UTC moment that many microseconds after 1970."""
    return _EPOCH + timedelta(microseconds=int(at_us))
