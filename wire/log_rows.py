"""The raw log both sides read: one line, CSV or JSON, to an alarm."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from wire.alarm import Alarm
from wire.moment import EARLIEST, LATEST

_MAX_CODE = 2**31 - 1
_HEADER_STARTS = ("timestamp", "time", "at")


class RowRejected(ValueError):
    """A line that cannot be read as an alarm; the message says why."""


@dataclass(frozen=True)
class RowReader:
    """Reads ``timestamp,alarm,serial`` or ``{"timestamp": …, "alarm": …, "serial": …}``.

    Rows of another serial, rows before ``since`` and header lines are none of ours: they give ``None``.
    """

    serial: str | None = None
    zone: tzinfo = UTC
    since: datetime | None = None

    def read(self, line: str) -> Alarm | None:
        """Return the line's alarm, or raise :class:`RowRejected`.

        Everything that passes here the service will accept, so an agent's own events never end in quarantine.
        """
        text = line.strip().lstrip("\ufeff")
        if not text or text.lower().startswith(_HEADER_STARTS):
            return None
        stamp, code, serial = _json_fields(text) if text.startswith("{") else _csv_fields(text)
        if self.serial is not None and serial != self.serial:
            return None
        alarm = Alarm(self._moment(stamp), _code(code))
        return alarm if self.since is None or alarm.at >= self.since else None

    def _moment(self, stamp: str) -> datetime:
        try:
            at = datetime.fromisoformat(stamp)
        except ValueError:
            raise RowRejected(f"{stamp[:40]!r} is not a timestamp like 2026-11-16 08:00:00.123") from None
        if at.tzinfo is None:
            at = at.replace(tzinfo=self.zone)
        try:
            at = at.astimezone(UTC)
        except OverflowError:
            raise RowRejected(f"{stamp[:40]!r} lies outside of time") from None
        if not EARLIEST <= at < LATEST:
            raise RowRejected(f"{stamp[:40]!r} lies outside {EARLIEST.year} to {LATEST.year}")
        return at


def _csv_fields(text: str) -> tuple[str, str, str | None]:
    fields = [field.strip().strip('"') for field in text.split(",")]
    if len(fields) < 2:  # noqa: PLR2004 - a timestamp and a code at least
        raise RowRejected("a row needs at least a timestamp and an alarm code, separated by a comma")
    return fields[0], fields[1], fields[2] if len(fields) > 2 else None  # noqa: PLR2004


def _json_fields(text: str) -> tuple[str, str, str | None]:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        raise RowRejected("the line starts like JSON but is not") from None
    stamp, code = row.get("timestamp", row.get("at")), row.get("alarm", row.get("code"))
    if not isinstance(stamp, str) or isinstance(code, bool) or not isinstance(code, int | str):
        raise RowRejected('a JSON row needs "timestamp" (text) and "alarm" (a number)')
    serial = row.get("serial")
    return stamp, str(code), None if serial is None else str(serial)


def _code(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 10 or int(text) > _MAX_CODE:  # noqa: PLR2004
        raise RowRejected(f"{text[:40]!r} is not an alarm code (a whole number from 0 to {_MAX_CODE})")
    return int(text)
