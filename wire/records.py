"""Rows and messages with named fields: which field is the time, the code, the text, and whether it raises."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_validator

from wire.events import TransitionKind
from wire.log_rows import RowRejected

_EXCEL_START = datetime(1899, 12, 30)  # noqa: DTZ001 - local time, as WinCC writes it
_MAX_SECONDS, _MAX_MILLISECONDS = 1e11, 1e14  # as numbers of seconds these are in the year 5138
_WHOLE = re.compile(r"(\d+)[.,]0+")
_UNIX = re.compile(r"\d{10}(\.\d+)?|\d{13}", re.ASCII)  # seconds or milliseconds since 1970, from 2001 on


class RecordFields(BaseModel):
    """The names of a record's fields.

    ``raised``, ``cleared`` and ``acknowledged`` are values of ``state``; records with another state are ignored.
    Without ``state`` every record raises an alarm. ``time_format`` is ``auto`` (ISO 8601, or seconds or
    milliseconds since 1970), ``wincc_ms`` (WinCC's Time_ms), or a format such as ``%d.%m.%Y %H:%M:%S``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    code: str
    time: str | None = None
    text: str | None = None
    severity: str | None = None
    state: str | None = None
    raised: tuple[str, ...] = ("1", "true", "active", "raised")
    cleared: tuple[str, ...] = ("0", "false", "clear", "cleared", "inactive")
    acknowledged: tuple[str, ...] = ("ack", "acknowledged")
    time_format: str = Field(default="auto", min_length=1)

    @field_validator("time_format")
    @classmethod
    def _can_be_read(cls, time_format: str) -> str:
        if time_format in ("auto", "wincc_ms"):
            return time_format
        try:
            if "%" not in time_format:
                raise ValueError  # noqa: TRY301
            datetime.strptime(datetime(2026, 11, 16, tzinfo=UTC).strftime(time_format), time_format)  # noqa: DTZ007
        except (ValueError, re.error):
            raise ValueError("give auto, wincc_ms or a format such as %d.%m.%Y %H:%M:%S") from None
        return time_format

    def kinds(self) -> dict[str, TransitionKind | None]:
        """Return what each state means, by its lower-case value; None is raised."""
        acknowledged = dict.fromkeys(self.acknowledged, TransitionKind.ACKNOWLEDGED)
        cleared = dict.fromkeys(self.cleared, TransitionKind.CLEARED)
        kinds = acknowledged | cleared | dict.fromkeys(self.raised)
        return {value.lower(): kind for value, kind in kinds.items()}


class Record(NamedTuple):
    """A record as it is written; ``at`` may have no zone, and is None if the record has no time.

    The alarm was raised, or changed otherwise if there is a ``kind``.
    """

    name: str
    at: datetime | None
    text: str
    severity: str
    kind: TransitionKind | None


def read_record(get: Callable[[str], Any], fields: RecordFields) -> Record | None:
    """Return a record, None if its state is none of ours, or raise :class:`RowRejected`."""
    kind: TransitionKind | None = None
    if fields.state is not None:
        state = _text(get(fields.state)).lower()
        kinds = fields.kinds()
        if state not in kinds:
            return None
        kind = kinds[state]
    name = _text(get(fields.code))
    whole = _WHOLE.fullmatch(name)
    return Record(
        whole[1] if whole else name,
        parse_time(get(fields.time), fields.time_format) if fields.time else None,
        _text(get(fields.text)) if fields.text else "",
        _text(get(fields.severity)) if fields.severity else "",
        kind,
    )


def parse_time(value: Any, time_format: str = "auto") -> datetime:
    """Return the time of a value; one without a zone is local."""
    try:
        if isinstance(value, datetime):
            return value
        if time_format == "wincc_ms":
            days = float(_text(value).replace(",", ".")) / 1_000_000
            milliseconds = round(days * 86_400_000)
            return _EXCEL_START + timedelta(milliseconds=milliseconds)
        if time_format != "auto":
            return datetime.strptime(_text(value), time_format)  # noqa: DTZ007 - the zone is a setting
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _since_1970(float(value))
        text = _text(value)
        return _since_1970(float(text)) if _UNIX.fullmatch(text) else datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        wanted = "a time like 2026-11-16 08:00:00.123" if time_format == "auto" else f"a time like {time_format}"
        raise RowRejected(f"{_text(value)[:40]!r} is not {wanted}") from None


def _since_1970(number: float) -> datetime:
    if number > _MAX_MILLISECONDS:
        number /= 1000
    if number > _MAX_SECONDS:
        number /= 1000
    return datetime.fromtimestamp(number, UTC)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value).strip()
