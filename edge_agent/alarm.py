"""What a machine hands to its agent: a code and the moment it was raised."""

from datetime import datetime
from typing import NamedTuple


class Alarm(NamedTuple):
    """One alarm, before it has a place in the spool."""

    at: datetime
    code: int
