"""An entry in the book of changes."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Deed:
    """Who did what to which thing, when, from where, and why if they had to say."""

    at: datetime
    who: str
    action: str
    subject: str
    reason: str | None
    origin: str | None = None
    number: int = 0


@dataclass(frozen=True)
class AuditQuery:
    """Which entries are asked for, newest first."""

    limit: int = 100
    before: int | None = None
    who: str | None = None
