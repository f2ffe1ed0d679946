"""Time zones by their names, as people give them."""

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from service.errors import InputRejected


def zone_named(name: str, *, pointer: str | None = None) -> ZoneInfo:
    """Return a time zone, or raise :class:`InputRejected`; ``pointer`` says where the name was given."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        message = f"{name!r} is no time zone; write one like Europe/Rome."
        raise InputRejected(message, pointer=pointer) from None
