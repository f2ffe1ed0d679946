"""Python's one interpreter, shared fairly: a thread that has much to do need not make answers wait for it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_SWITCH_INTERVAL_S = (
    0.0005  # seconds that a busy thread keeps the interpreter while another wants it; Python's own are 5 ms
)


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Take short turns for as long as this lasts: always, they would cost ingest a tenth of its speed."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)
