"""Moments as whole microseconds since 1970: how spool, store and arrays keep time, exactly."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY, _SECOND = 86_400_000_000, 1_000_000


def to_us(at: datetime) -> int:
    """Return a moment as whole microseconds since 1970."""
    since = at - _EPOCH
    return since.days * _DAY + since.seconds * _SECOND + since.microseconds


def from_us(at_us: int) -> datetime:
    """Return the UTC moment that many microseconds after 1970."""
    return _EPOCH + timedelta(microseconds=int(at_us))
