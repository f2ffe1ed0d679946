"""An entry in the book of changes."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Deed:
    """Who did what to which thing, when, and why if they had to say."""

    at: datetime
    who: str
    action: str
    subject: str
    reason: str | None
