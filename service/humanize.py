"""Times and numbers as people say them."""

from datetime import timedelta

_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def duration(span: timedelta) -> str:
    """Return a span in the unit that suits its size: ``20 minutes``, ``29 hours``, ``3 days``."""
    for unit, name, most in ((_MINUTE, "minute", 90), (_HOUR, "hour", 36)):
        number = round(span / unit)
        if number <= most:
            return plural(number, name)
    return plural(round(span / _DAY), "day")


def ago(span: timedelta) -> str:
    """Return how long ago something was."""
    return f"{duration(span)} ago" if span >= _MINUTE else "just now"


def plural(number: int, noun: str) -> str:
    """Return a number of things: ``no alarm``, ``1 alarm``, ``7 alarms``."""
    return f"{number or 'no'} {noun}{'' if number <= 1 else 's'}"


def times(number: int) -> str:
    """Return how often something happened."""
    return {1: "once", 2: "twice"}.get(number, f"{number} times")
