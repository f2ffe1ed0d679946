"""The alarm rate against the bands of ISA-18.2.

The standard calls about 150 alarms a day for one operator "very likely to be acceptable" and about 300 "maximum
manageable". It speaks of operators; we know only machines, so a machine stands for the person who minds it. Who
minds three of them gets three times the rate.
"""

from datetime import timedelta

from wire.words import RateBand

ACCEPTABLE_UP_TO, EXCESSIVE_FROM = 150, 300
LEAST_TIME = timedelta(minutes=30)
_MICROSECOND, _DAY = timedelta(microseconds=1), timedelta(days=1)


def alarms_per_day(alarms: int, watched_us: int) -> float | None:
    """Return the alarms of a machine in 24 hours, or None where it was watched for less than half an hour."""
    if watched_us < LEAST_TIME // _MICROSECOND:
        return None
    return alarms * (_DAY // _MICROSECOND) / watched_us


def band(rate: float) -> RateBand:
    """Return the band of so many alarms a day."""
    if rate <= ACCEPTABLE_UP_TO:
        return RateBand.ACCEPTABLE
    return RateBand.MANAGEABLE if rate < EXCESSIVE_FROM else RateBand.EXCESSIVE
