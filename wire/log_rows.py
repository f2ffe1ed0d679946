"""The raw log both sides read: one line, CSV or JSON, to an alarm."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

from wire.alarm import Alarm
from wire.timestamps import EARLIEST, LATEST

_MAX_CODE = 2**31 - 1
_HEADER_STARTS = ("timestamp", "time", "at")
_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}


class RowRejected(ValueError):
    """A line that cannot be read as an alarm; the message says why."""


class Fields(NamedTuple):
    """A line in its parts, as they are written."""

    stamp: str
    code: str
    serial: str | None


def fields(line: str) -> Fields | None:
    """Return the fields of a line, None of a header or an empty one, or raise :class:`RowRejected`."""
    text = line.strip().lstrip("\ufeff")
    if not text or text.lower().startswith(_HEADER_STARTS):
        return None
    return _json_fields(text) if text.startswith("{") else _csv_fields(text)


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
        row = fields(line)
        return None if row is None else self.take(row)

    def take(self, row: Fields) -> Alarm | None:
        """Return the alarm of a line that was split into its fields, or raise :class:`RowRejected`."""
        if self.serial is not None and row.serial != self.serial:
            return None
        alarm = Alarm(self._moment(row.stamp), whole_code(row.code))
        return alarm if self.since is None or alarm.at >= self.since else None

    def _moment(self, stamp: str) -> datetime:
        try:
            at = datetime.fromisoformat(stamp)
        except ValueError:
            raise RowRejected(f"{stamp[:40]!r} is not a timestamp like 2026-11-16 08:00:00.123") from None
        return in_utc(at, self.zone)


def in_utc(at: datetime, zone: tzinfo) -> datetime:
    """Return a time in UTC, one without a zone read in ``zone``, or raise :class:`RowRejected`."""
    try:
        moment = (at if at.tzinfo is not None else at.replace(tzinfo=zone)).astimezone(UTC)
    except OverflowError:
        moment = None
    if moment is None or not EARLIEST <= moment < LATEST:
        raise RowRejected(f"{at.isoformat()} is outside {EARLIEST.year} to {LATEST.year}")
    return moment


def _csv_fields(text: str) -> Fields:
    found = [field.strip().strip('"') for field in text.split(",")]
    if len(found) < 2:  # noqa: PLR2004 - a timestamp and a code at least
        raise RowRejected(f"a row needs at least a timestamp and an alarm code, separated by a comma{_hint(text)}")
    return Fields(found[0], found[1], found[2] if len(found) > 2 else None)  # noqa: PLR2004


def _hint(text: str) -> str:
    """Say which other separator a row has, if it has one."""
    is_text = text.replace("\t", "").isprintable() and "\ufffd" not in text
    other = next((name for sign, name in _OTHER_SEPARATORS.items() if sign in text), None)
    return f"; this one has {other}" if other and is_text else ""


def _json_fields(text: str) -> Fields:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        raise RowRejected("the line starts like JSON but is not") from None
    stamp, code = row.get("timestamp", row.get("at")), row.get("alarm", row.get("code"))
    if not isinstance(stamp, str) or isinstance(code, bool) or not isinstance(code, int | str):
        raise RowRejected('a JSON row needs "timestamp" (text) and "alarm" (a number)')
    serial = row.get("serial")
    return Fields(stamp, str(code), None if serial is None else str(serial))


def is_number(text: str) -> bool:
    """Return whether a text is a whole number without a sign."""
    return text.isascii() and text.isdigit()


def whole_code(text: str) -> int:
    """Return an alarm code, or raise :class:`RowRejected`."""
    if not is_number(text) or len(text) > 10 or int(text) > _MAX_CODE:  # noqa: PLR2004
        raise RowRejected(f"{text[:40]!r} is not an alarm code (a whole number from 0 to {_MAX_CODE})")
    return int(text)
