"""How the agent is, left in a small file beside its spool for ``alarmcast-edge status`` to read."""

import fcntl
import hashlib
import json
import logging
import os
import secrets
import sqlite3
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from wire.state import Note
from wire.timestamps import from_us

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AgentStatus:
    """What a running agent says of itself; times are ISO 8601."""

    pid: int
    machine: str
    broker: str
    connected: bool
    since: str
    error: str | None = None
    last_ack_at: str | None = None
    skew_ms: int | None = None
    window: int | None = None
    credentials: str | None = None  # a fingerprint of the user name and password that are used


class StatusFile:
    """Written whole and renamed, never half; on a full disk the old one stays."""

    def __init__(self, spool: Path) -> None:
        self._path = spool.with_name(f"{spool.name}.status")
        self._last: AgentStatus | None = None

    def write(self, report: AgentStatus) -> None:
        """Replace what was said before, if there is news."""
        if report == self._last:
            return
        try:
            fresh = self._path.with_name(f"{self._path.name}.new")
            fresh.write_text(json.dumps(asdict(report)), encoding="utf-8")
            fresh.replace(self._path)
        except OSError as error:
            log.debug("cannot write %s now: %s", self._path, error)
            return
        self._last = report

    def read(self) -> AgentStatus | None:
        """Return what was said last, if anything can be read."""
        with suppress(OSError, ValueError, TypeError):
            return AgentStatus(**json.loads(self._path.read_text(encoding="utf-8")))
        return None


def fingerprint(username: str | None, password: str | None, salt: str | None = None) -> str:
    """Return a salted trace of credentials: enough to notice another password, too short to guess one by."""
    salt = salt or secrets.token_hex(8)
    secret = f"{username or ''}\n{password or ''}".encode()
    return f"{salt}:{hashlib.scrypt(secret, salt=salt.encode(), n=2**12, r=8, p=1).hex()[:4]}"


def has_fingerprint(known: str, username: str | None, password: str | None) -> bool:
    """Say whether credentials are those of a fingerprint."""
    return fingerprint(username, password, known.partition(":")[0]) == known


@dataclass(frozen=True)
class SpoolStats:
    """A spool seen from outside, while an agent may be working with it."""

    events: int
    gaps: int
    oldest: datetime | None
    in_use: bool
    skipped: int = 0
    last_skipped: Note | None = None
    warning: Note | None = None


def inspect_spool(spool: Path) -> SpoolStats | None:
    """Return how full a spool is without disturbing its agent; None where there is no spool."""
    if not spool.exists():
        return None
    try:
        with closing(sqlite3.connect(f"file:{spool}?mode=ro", uri=True, timeout=5)) as database:
            events, oldest = database.execute("SELECT count(*), min(seq) FROM events").fetchone()
            gaps = database.execute("SELECT count(*) FROM gaps").fetchone()[0]
            at = database.execute("SELECT at_us FROM events WHERE seq = ?", (oldest,)).fetchone()
            meta = dict(database.execute("SELECT key, value FROM meta").fetchall())
    except sqlite3.Error:
        return None
    return SpoolStats(
        events,
        gaps,
        from_us(at[0]) if at else None,
        _in_use(spool),
        int(meta.get("skipped", 0)),
        _note(meta.get("last_skipped")),
        _note(meta.get("warning")),
    )


def skipped_rows(view: SpoolStats) -> str:
    """Return in a sentence how many rows of the source could not be read, the last of them, and what to do."""
    last = view.last_skipped
    shown = f"; last: {last.text} ({last.at.isoformat(timespec='seconds')})" if last else ""
    return (
        f"{view.skipped} rows of the source could not be read{shown}; check the source's format: "
        "timestamp,alarm,serial with a time like 2026-11-16 08:00:00 and a whole number as alarm"
    )


def _note(text: str | None) -> Note | None:
    return None if text is None else Note.model_validate_json(text)


def _in_use(spool: Path) -> bool:
    try:
        guard = os.open(spool.with_name(f"{spool.name}.lock"), os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(guard, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(guard)
    return False
