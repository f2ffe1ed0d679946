"""The agent's log: one line for each thing that happened, and nothing in it that is secret."""

import logging
import sys
from collections.abc import Iterable
from typing import TextIO

_SHORTEST_SECRET = 4  # shorter ones are in every second word


class OneLine(logging.Formatter):
    """Escapes what would end a line or deceive a reader, so that nobody writes lines but us."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")
        self._secrets = sorted((one for one in secrets if len(one) >= _SHORTEST_SECRET), key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line, a trace within it."""
        text = super().format(record)
        for secret in self._secrets:
            text = text.replace(secret, "***")
        if text.isprintable():
            return text
        return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def set_up_logs(*, secrets: Iterable[str | None] = (), stream: TextIO | None = None) -> None:
    """Let this process log on one line each; called again, with what must never be written, once that is known."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(OneLine(one for one in secrets if one))
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
