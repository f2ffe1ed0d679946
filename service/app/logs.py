"""The log: one line per event, without secrets.

Our modules and all libraries use the standard library's logging; only this module formats it. Values from outside
(topics, paths, names, answers) are escaped, in JSON and in text, so that they cannot forge a line.
"""

import json
import logging
import re
import sys
import threading
from collections.abc import Iterable, MutableMapping
from types import TracebackType
from typing import Any, TextIO
from urllib.parse import unquote, urlsplit

import structlog
from structlog.contextvars import merge_contextvars
from structlog.stdlib import ExtraAdder, ProcessorFormatter, add_log_level, add_logger_name

from service.settings import LogFormat, LogLevel, Settings

_OURS = ("service", "alarmcast", "wire", "forecasting")
_FIRST = ("timestamp", "level", "event")
_STARS = "***"
_SHORTEST_SECRET = 4  # shorter ones are in every second word
_SECRET_NAME = re.compile(r"(?i)(password|passwd|secret|token|authorization|cookie|api_?key|credential)")
_NAMED = r"(?i)\b(passw(?:or)?d|secret|token|api_?key)(['\"]?\s*[=:]\s*['\"]?)[^\s&'\"]+"
_PATTERNS = (
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://[^\s/:@]*):[^\s/]+@"), rf"\1:{_STARS}@"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}"), rf"\1 {_STARS}"),
    (re.compile(r"\back_[\w-]{8,}"), f"ack_{_STARS}"),  # an API key
    (re.compile(_NAMED), rf"\1\2{_STARS}"),
)
Event = MutableMapping[str, Any]


def set_up_logs(settings: Settings, *, stream: TextIO | None = None, least: LogLevel | None = None) -> None:
    """Let this process log as the settings say, from ``least`` on unless they say from where."""
    stream = stream or sys.stderr
    level = settings.log_level if "log_level" in settings.model_fields_set else least or settings.log_level
    as_json = settings.log_format is LogFormat.JSON or (
        settings.log_format is LogFormat.AUTO and not stream.isatty()
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter(as_json=as_json, secrets=secrets_of(settings)))
    root = logging.getLogger()
    for before in root.handlers[:]:
        root.removeHandler(before)
    root.addHandler(handler)
    # Libraries speak from warnings on: in their debugging they print headers, cookies and addresses with tokens.
    weight = logging.getLevelNamesMapping()[level.upper()]
    root.setLevel(max(weight, logging.WARNING))
    for name in _OURS:
        logging.getLogger(name).setLevel(weight)
    logging.captureWarnings(capture=True)
    threading.excepthook = _thread_ended
    sys.excepthook = _process_ends


def formatter(*, as_json: bool, secrets: Iterable[str]) -> logging.Formatter:
    """Return what makes one line, or a line with an indented trace below it, of a record."""
    return ProcessorFormatter(
        foreign_pre_chain=[
            merge_contextvars,
            ExtraAdder(),
            add_log_level,
            add_logger_name,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
        ],
        processors=[
            ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            RedactingFilter(secrets),
            _as_json if as_json else _as_text,
        ],
    )


def secrets_of(settings: Settings) -> list[str]:
    """Return what must never be written: every setting that is not shown, and the password of a URL among them."""
    hidden = [getattr(settings, name) for name, field in type(settings).model_fields.items() if not field.repr]
    found = [str(getattr(one, "get_secret_value", lambda one=one: one)()) for one in hidden if one is not None]
    passwords = [word for one in found if "://" in one and (word := urlsplit(one).password)]
    return [*(one for one in found if "://" not in one), *passwords, *(unquote(word) for word in passwords)]


class RedactingFilter:
    """Puts stars in the place of known secrets and of what looks like one."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = sorted({one for one in secrets if len(one) >= _SHORTEST_SECRET}, key=len, reverse=True)
        self._known = re.compile("|".join(re.escape(one) for one in known)) if known else None

    def __call__(self, _logger: object, _method: str, event: Event) -> Event:
        """Return an event without them."""
        return {
            name: _STARS if _SECRET_NAME.search(name) and value else self._discreet(value)
            for name, value in event.items()
        }

    def _discreet(self, value: Any) -> Any:
        if isinstance(value, bool | int | float | None):
            return value
        text = self._known.sub(_STARS, str(value)) if self._known else str(value)
        for pattern, instead in _PATTERNS:
            text = pattern.sub(instead, text)
        return text


def _as_json(_logger: object, _method: str, event: Event) -> str:
    return json.dumps({name: event.pop(name) for name in _FIRST if name in event} | dict(event))


def _as_text(_logger: object, _method: str, event: Event) -> str:
    timestamp, level, words = (event.pop(name, "") for name in _FIRST)
    trace = str(event.pop("exception", "")).splitlines()
    more = " ".join(f"{name}={_printable(value)}" for name, value in event.items() if name != "logger")
    line = f"{timestamp} {level:<7} {_printable(words)}" + (f"  {more}" if more else "")
    return "\n".join([line, *(f"    | {_printable(part)}" for part in trace)])


def _printable(value: object) -> str:
    """Return text that stays on its line and is what it looks like."""
    text = str(value)
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def _process_ends(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    logging.getLogger(__name__).critical("this is a defect, and the process ends", exc_info=error)


def _thread_ended(ended: threading.ExceptHookArgs) -> None:
    name = ended.thread.name if ended.thread else "?"
    if ended.exc_value is not None:
        logging.getLogger(__name__).critical("the thread %s has ended", name, exc_info=ended.exc_value)
