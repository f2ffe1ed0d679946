"""What a machine raises: a code and the moment it was raised."""

from datetime import datetime
from typing import NamedTuple


class Alarm(NamedTuple):
    """One alarm, before it has a place in a spool or a store."""

    at: datetime
    code: int
