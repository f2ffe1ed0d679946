"""The agent's log: one line per record, without secrets."""

import logging
import sys
from collections.abc import Iterable
from typing import TextIO

_MIN_SECRET_LENGTH = 4  # shorter ones occur in many words


class OneLine(logging.Formatter):
    """Escapes control characters, so that logged data cannot forge lines, and redacts secrets."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")
        self._secrets = sorted(
            (secret for secret in secrets if len(secret) >= _MIN_SECRET_LENGTH), key=len, reverse=True
        )

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line, with its traceback."""
        text = super().format(record)
        for secret in self._secrets:
            text = text.replace(secret, "***")
        if text.isprintable():
            return text
        return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def set_up_logs(*, secrets: Iterable[str | None] = (), stream: TextIO | None = None) -> None:
    """Set up logging; called again with the secrets to redact once they are known."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(OneLine(secret for secret in secrets if secret))
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
