"""The agent's log: one line per record, without secrets."""

import logging
import sys
from collections.abc import Iterable
from typing import TextIO

_MIN_SECRET_LENGTH = 4  # shorter ones occur in many words


class OneLine(logging.Formatter):
    """Escapes control characters, so that logged data cannot forge lines, and redacts secrets.

    Lines begin with the machine whose name is at the end of the thread's name, if one of ``machines`` is.
    """

    def __init__(self, secrets: Iterable[str] = (), machines: Iterable[str] = ()) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")
        self._machines = sorted(machines, key=len, reverse=True)
        self._secrets = sorted(
            (secret for secret in secrets if len(secret) >= _MIN_SECRET_LENGTH), key=len, reverse=True
        )

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name of the base class
        """Return the line without a traceback."""
        thread = record.threadName or ""
        machine = next((name for name in self._machines if thread.endswith(name)), None)
        if machine is not None:
            record.message = f"{machine}: {record.message}"
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line, with its traceback."""
        text = super().format(record)
        for secret in self._secrets:
            text = text.replace(secret, "***")
        if text.isprintable():
            return text
        return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def set_up_logs(
    *, secrets: Iterable[str | None] = (), machines: Iterable[str] = (), stream: TextIO | None = None
) -> None:
    """Set up logging; called again once secrets to redact, and machines of several, are known."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(OneLine((secret for secret in secrets if secret), machines))
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
