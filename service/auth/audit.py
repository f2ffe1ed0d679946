"""An entry in the book of changes."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class AuditRecord:
    """Who did what to which thing, when, from where, and why if they had to say."""

    at: datetime
    actor: str
    action: str
    subject: str
    reason: str | None
    origin: str | None = None
    id: int = 0


@dataclass(frozen=True)
class AuditQuery:
    """Which entries are asked for, newest first."""

    limit: int = 100
    before: int | None = None
    who: str | None = None
